package org.apache.spark.kafka010;

import scala.Tuple2;
import scala.collection.immutable.Seq;

/** The Scala object of that name, where parameters hold no secret. */
public final class KafkaRedactionUtil$ {
  public static final KafkaRedactionUtil$ MODULE$ = new KafkaRedactionUtil$();

  public Seq<Tuple2<String, Object>> redactParams(Seq<Tuple2<String, Object>> parameters) {
    return parameters;
  }
}
