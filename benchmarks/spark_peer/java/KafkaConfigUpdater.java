package org.apache.spark.kafka010;

import java.util.HashMap;
import java.util.Map;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/** A consumer's parameters while the connector completes them. There is no token to add. */
public final class KafkaConfigUpdater {
  private final Map<String, Object> parameters = new HashMap<>();

  public KafkaConfigUpdater(String module, scala.collection.immutable.Map<String, Object> given) {
    for (Iterator<Tuple2<String, Object>> pairs = given.iterator(); pairs.hasNext(); ) {
      Tuple2<String, Object> pair = pairs.next();
      parameters.put(pair._1(), pair._2());
    }
  }

  public KafkaConfigUpdater set(String key, Object value) {
    parameters.put(key, value);
    return this;
  }

  public KafkaConfigUpdater setIfUnset(String key, Object value) {
    parameters.putIfAbsent(key, value);
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded() {
    return this;
  }

  public KafkaConfigUpdater setAuthenticationConfigIfNeeded(Option<?> token) {
    return this;
  }

  public Map<String, Object> build() {
    return parameters;
  }
}
