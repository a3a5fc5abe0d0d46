"""Controlled shutdown: a stopping broker first asks the controller to move its leaders.

It succeeds when the controller's response has code 0 and no remaining partition. The controller may
change between attempts, so it is looked up each time. After the last attempt the broker stops
anyway, and also if ZooKeeper cannot be reached, since leaders cannot be moved then. 0.8.2.2 would
wait for ZooKeeper for ever. Source: KafkaServer.controlledShutdown 0.8.2.2.
"""

from __future__ import annotations

import logging

from kafka08.broker.cluster.inter_broker import inter_broker
from kafka08.broker.settings.config import BrokerConfig
from kafka08.errors import ClientError, KafkaError, SessionLost
from kafka08.network.connection import Connection
from kafka08.protocol.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafka08.runtime import BrokerRuntime
from kafka08.structs import NO_CONTROLLER
from kafka08.zk.nodes import ControllerNode
from kafka08.zk.store import ClusterStore

logger = logging.getLogger("kafka.server.KafkaServer")


def request_controlled_shutdown(
    config: BrokerConfig, runtime: BrokerRuntime, store: ClusterStore
) -> bool:
    """Ask up to controlled.shutdown.max.retries times; returns whether it succeeded. Switches.

    If the connection to ZooKeeper was just lost, it waits for it once, as any call does; it does
    not wait for a session that must have expired.
    """
    logger.info("[Kafka Server %d], Starting controlled shutdown", config.broker_id)
    for attempt in range(config.controlled_shutdown_max_retries):
        if not store.zk.may_have_session:
            logger.warning("The ZooKeeper session has expired: leaders cannot be moved")
            break
        if attempt:
            runtime.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
            logger.warning("Retrying controlled shutdown after the previous attempt failed...")
        try:
            controller = store.controller()
            if controller is not None and controller.broker_id == NO_CONTROLLER:
                logger.info("No leader is moved: all brokers of the cluster stop")
                return False
            response = _ask(config, runtime, store, controller)
        except ClientError as error:
            logger.warning(
                "Error during controlled shutdown, possibly because leader movement took longer "
                "than the configured socket.timeout.ms: %s",
                error,
            )
            continue
        except SessionLost as error:
            logger.warning("ZooKeeper cannot be reached to find the controller: %s", error)
            break
        except KafkaError as error:
            logger.warning("Controlled shutdown could not be requested: %s", error)
            continue
        if response is None:
            continue
        if response.error_code == 0 and not response.partitions_remaining:
            logger.info("[Kafka Server %d], Controlled shutdown succeeded", config.broker_id)
            return True
        remaining = [f"[{item.topic},{item.partition}]" for item in response.partitions_remaining]
        logger.info("Remaining partitions to move: %s", ",".join(remaining))
        logger.info("Error code from controller: %d", response.error_code)
    logger.warning(
        "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed"
    )
    return False


def _ask(
    config: BrokerConfig,
    runtime: BrokerRuntime,
    store: ClusterStore,
    controller: ControllerNode | None,
) -> ControlledShutdownResponse | None:
    """The controller's response; None if no controller can be reached."""
    if controller is None:
        return None
    broker = store.broker(controller.broker_id, config.inter_broker_listener)
    if broker is None:
        return None
    version = inter_broker(config.protocol_version).controlled_shutdown
    connection = Connection(
        broker.host,
        broker.port,
        client_id=str(config.broker_id),
        timeout_ms=config.controller_socket_timeout_ms,
        runtime=runtime,
    )
    try:
        response = connection.send(ControlledShutdownRequest(config.broker_id, version=version))
        assert isinstance(response, ControlledShutdownResponse)
        return response
    finally:
        connection.close()
