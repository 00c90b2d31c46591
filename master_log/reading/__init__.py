"""Records as Spark data frames: read from Kafka, decoded, and with the time of the log instead of the producer's."""
