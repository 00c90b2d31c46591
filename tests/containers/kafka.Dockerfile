# Stands in for apache/kafka: the same jars, Debian's Java, the same user and folders.
FROM bookworm
RUN mkdir -p /usr/share/man/man1 && apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless
RUN useradd --uid 1000 appuser && mkdir -p /opt/kafka/bin /opt/kafka/config /var/lib/kafka/data \
    && chown appuser /opt/kafka/config /var/lib/kafka/data
COPY jars /opt/kafka/libs
COPY kafka.sh kafka-configs.sh /opt/kafka/bin/
USER appuser
CMD ["/bin/bash", "/opt/kafka/bin/kafka.sh"]
