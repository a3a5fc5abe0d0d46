"""OpenTelemetry for applications: spans of sends and polls, and `metrics()` as instruments.

    producer = TracedProducer(KafkaProducer(config))
    consumer = KafkaConsumer(config, interceptors=[TracingInterceptor()])
    observe("kafka.producer", producer.metrics)

Needs the extra `otel` (opentelemetry-api); where spans and metrics go is for the application's SDK
to say. A trace ends at the broker: messages of 0.8 to 0.10 have no headers, so nothing can carry
its context to the consumer, whose spans begin traces of their own.
"""

from kafka08.extras import naming_extra

with naming_extra("kafka08.otel"):
    from kafka08.otel.metering import observe
    from kafka08.otel.tracing import TracedProducer, TracingInterceptor

__all__ = ["TracedProducer", "TracingInterceptor", "observe"]
