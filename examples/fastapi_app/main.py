"""A FastAPI application whose rows and jobs are committed together. What the queue adds ends in `# pgq`.

uvicorn main:app    pgq-core worker --app tasks
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from sqlalchemy import make_url
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from tasks import welcome  # pgq

from pgq_core import AsyncJobQueue  # pgq

engine = create_async_engine(make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"))
queue = AsyncJobQueue(os.environ["DATABASE_URL"])  # pgq


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    welcomed: Mapped[bool] = mapped_column(default=False)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as conn:
        await conn.run_sync(Base.metadata.create_all)
    yield
    await queue.close()  # pgq
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/customers", status_code=201)
async def sign_up(email: str) -> dict[str, int]:
    try:
        async with AsyncSession(engine) as session, session.begin():
            customer = Customer(email=email)
            session.add(customer)
            await session.flush()
            await welcome.options(conn=session).enqueue(queue, customer=customer.id)  # pgq
            return {"id": customer.id}
    except IntegrityError:
        raise HTTPException(409, "this address is known already") from None
