#!/bin/sh
exec java -cp '/opt/kafka/libs/*' kafka.admin.ConfigCommand "$@"
