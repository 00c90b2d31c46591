# Starts the broker by the variables KAFKA_…, as apache/kafka reads them: ___ is a dash, __ an underscore, _ a dot.
set -eu
properties=/opt/kafka/config/server.properties
: > "$properties"
for name in $(compgen -e KAFKA_); do
  key=${name#KAFKA_}
  key=${key//___/-}; key=${key//__/=}; key=${key//_/.}; key=${key//=/_}
  printf '%s=%s\n' "${key,,}" "${!name}" >> "$properties"
done
java() { /usr/bin/java -cp '/opt/kafka/libs/*' "$@"; }
java kafka.tools.StorageTool format --ignore-formatted --cluster-id 5L6g3nShT-eMCtK--X86sw --config "$properties"
exec /usr/bin/java -Xmx512m -cp '/opt/kafka/libs/*' kafka.Kafka "$properties"
