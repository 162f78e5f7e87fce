FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
# The locked versions, as constraints: their hashes would have to cover the project itself as well.
RUN grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' requirements.lock > /tmp/constraints.txt \
    && python -m venv /opt/pgq \
    && /opt/pgq/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt ".[api]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/pgq pgq
COPY --from=build /opt/pgq /opt/pgq
ENV PATH=/opt/pgq/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER pgq
WORKDIR /app
ENTRYPOINT ["pgq-core"]
CMD ["--help"]
