"""`kafka08 up | status | down`: a local cluster, in the foreground or detached."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kafka08.cli.commands import Commands
from kafka08.cli.echo import say, show
from kafka08.cli.failures import fail
from kafka08.cli.options import (
    NEW_DIRECTORY,
    Whole,
    broker_keys,
    config_options,
    example,
    json_option,
    level_option,
    profile_option,
    read_config,
)
from kafka08.cli.signals import StopRequest, handles_stop_signals, interrupt_on_stop_signals
from kafka08.cli.table import show_json
from kafka08.config import PORT_MAX, parse_overrides
from kafka08.errors import KafkaError
from kafka08.levels import LEVELS, NEWEST, level_fault

if TYPE_CHECKING:
    from kafka08.embedded import EmbeddedCluster
    from kafka08.embedded.broker_state import BrokerState
    from kafka08.embedded.cluster import ZooKeeperKind
    from kafka08.embedded.detached import ClusterDirectory, ClusterState
    from kafka08.embedded.supervisor import Supervisor
    from kafka08.runtime import Event

BROKERS = 3
ZOOKEEPERS = ("embedded", "java")
ZOOKEEPER_PORT, FIRST_BROKER_PORT = 2181, 9092
"""The usual ports; if they are taken, other ones are used."""
_POLL_S = 0.01

CLUSTER_OPTIONS = (
    *("brokers", "level", "zookeeper", "profile", "config_file", "overrides"),
    *("control", "cuttable", "port"),
)  # fmt: skip
"""Options that only a start can take into account."""


def loopback_address(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, int] | None:
    """Host and port of HOST:PORT. BadParameter for a host that others can reach."""
    if value is None:
        return None
    from kafka08.runtime.sockets import is_loopback
    from kafka08.structs import split_host_port

    host, port = split_host_port(value)
    if not port or not port.isdecimal() or int(port) > PORT_MAX or not is_loopback(host):
        raise click.BadParameter(
            f"{value!r} is not host:port of this machine alone, such as 127.0.0.1:9000", ctx, option
        )
    return host, int(port)


data_dir_option = click.option(
    "--data-dir",
    envvar="KAFKA08_DATA_DIR",
    show_envvar=True,
    type=NEW_DIRECTORY,
    help="The cluster's directory; default: that of the user's detached cluster or, if none runs "
    "there, of the cluster last started by a plain `up`.",
)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    epilog=example("kafka08 up --detach --brokers 3 --data-dir cluster"),
)
@click.option(
    "--brokers",
    type=Whole(1, 20),
    help=f"Default: {BROKERS}, or as many as the cluster in the directory has.",
)
@click.option(
    "--data-dir",
    envvar="KAFKA08_DATA_DIR",
    show_envvar=True,
    type=NEW_DIRECTORY,
    help="The directory of ZooKeeper's and the brokers' data. Default: a temporary one; with "
    "--detach, one per user.",
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready; it keeps running.")
@level_option(NEWEST)
@click.option(
    "--zookeeper",
    type=click.Choice(ZOOKEEPERS),
    help="embedded: our own ZooKeeper server for tests, which needs no Java and never syncs to "
    "disk; java: Apache's. Default: that whose data is in the directory; in a new one java with "
    "--data-dir, else embedded.",
)
@click.option(
    "--port",
    type=Whole(1, PORT_MAX - 20),
    help=f"The first broker's port; the others follow. Default: from {FIRST_BROKER_PORT} on, or "
    "free ones. ZooKeeper has 2181 or a free one.",
)
@click.option(
    "--control",
    metavar="HOST:PORT",
    callback=loopback_address,
    help="Serve faults, kills and waits to programs in any language over HTTP, on a loopback "
    "address; port 0: a free one. The file control-token in the cluster's directory has the token.",
)
@click.option(
    "--cuttable", is_flag=True, help="Put a relay before each broker, so that `fault cut` works."
)
@profile_option
@json_option("One JSON object, as from status --json.")
@config_options
@handles_stop_signals
@click.pass_context
def up(
    ctx: click.Context,
    brokers: int | None,
    data_dir: Path | None,
    detach: bool,
    as_json: bool,
    level: str | None,
    zookeeper: ZooKeeperKind | None,
    port: int | None,
    control: tuple[str, int] | None,
    cuttable: bool,
    profile: str | None,
    config_file: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Run ZooKeeper and brokers until SIGTERM or Ctrl-C; with --detach, until `kafka08 down`.

    The given keys apply to every broker, except broker.id, port, advertised.port, listeners,
    advertised.listeners and zookeeper.connect, which differ between them. If a cluster already
    runs in the directory, the command prints its addresses and starts nothing. When a broker dies,
    the others continue; the commands below stop or start a broker of a running cluster.
    """
    if ctx.invoked_subcommand is not None:
        interrupt_on_stop_signals()
        return
    if detach:
        interrupt_on_stop_signals()
        config = keys_for_all(config_file, overrides, profile, level)
        show_cluster(start_detached(data_dir, brokers, zookeeper, config, control, cuttable, port))
        return
    stopping = StopRequest()
    from kafka08.embedded.fork_server import warm

    warm()  # brokers are imported while this process prepares their start
    config = keys_for_all(config_file, overrides, profile, level)
    run(brokers, zookeeper, config, data_dir, stopping, control, cuttable, port)


def ask_cluster(data_dir: Path | None, verb: str, **parameters: Any) -> Any:
    """Have the process of a running cluster execute a verb (cluster_control.py); exits 1 if none
    runs."""
    from kafka08.embedded.control import RESPONSE_S, ask

    directory, _ = find_running(data_dir)
    await_ready(directory)
    response_s = RESPONSE_S + parameters.get("timeout", 0)
    return ask(directory.path, verb, response_s, **parameters)


def broker_command(verb: str, text: str) -> None:
    """Add `kafka08 up VERB ID`, with `text` as its help."""

    @up.command(verb, epilog=example(f"kafka08 up {verb} 1"), help=text)
    @click.argument("broker", metavar="ID", type=Whole(0))
    @data_dir_option
    @json_option("One JSON object.")
    @click.pass_context
    def command(ctx: click.Context, broker: int, data_dir: Path | None, as_json: bool) -> None:
        assert ctx.parent is not None
        state = ask_cluster(data_dir or ctx.parent.params["data_dir"], verb, broker=broker)
        if as_json:
            show_json({"broker": broker, "done": state["text"]})
        else:
            show(state["text"])


broker_command("restart", "Stop the broker ID cleanly, if it runs, and start it again.")
broker_command("stop", "Stop the broker ID cleanly: its leaders move to other brokers first.")
broker_command("kill", "Kill the broker ID: SIGKILL, as a crash would.")


@click.command(epilog=example('eval "$(kafka08 status --env)"'))
@data_dir_option
@json_option("One JSON object.")
@click.option("--env", "as_env", is_flag=True, help="Shell lines that configure other commands.")
def status(data_dir: Path | None, as_json: bool, as_env: bool) -> None:
    """Show the cluster's addresses and the state of each broker; exits 1 if none runs."""
    directory, state = find_running(data_dir)
    if as_json:
        show_json(asdict(state))
    elif as_env:
        state = await_ready(directory)
        show(f"export KAFKA08_ZOOKEEPER={quote(state.zookeeper)}")
        show(f"export KAFKA08_BOOTSTRAP={quote(state.bootstrap)}")
        if state.control:
            show(f"export KAFKA08_CONTROL={quote(state.control)}")
            show(f"export KAFKA08_CONTROL_TOKEN_FILE={quote(control_token(state))}")
    elif not state.is_ready:
        show(f"starting   process {state.pid} in {state.directory}")
    else:
        show_cluster(state)


@click.command(epilog=example("kafka08 down"))
@data_dir_option
@json_option("One JSON object.")
def down(data_dir: Path | None, as_json: bool) -> None:
    """Stop the cluster cleanly. Its data stays for the next `up` on the directory, unless it is
    temporary."""
    directory = open_directory(data_dir)
    stopped = directory.stop()
    if as_json:
        show_json({"directory": str(directory.path), "stopped": stopped is not None})
    if stopped is None:
        report_none_runs(directory)
        return
    stays = "its data is still there" if directory.path.exists() else "its data was temporary"
    say(f"Stopped the cluster in {directory.path}; {stays}.")


def open_directory(data_dir: Path | None) -> ClusterDirectory:
    """The directory of the cluster that a command is about."""
    from kafka08.embedded.detached import ClusterDirectory, find_directory

    return find_directory() if data_dir is None else ClusterDirectory(data_dir)


def find_running(data_dir: Path | None) -> tuple[ClusterDirectory, ClusterState]:
    """The same, and the state of the cluster that runs there; exits 1 if none does."""
    directory = open_directory(data_dir)
    state = directory.running()
    if state is None:
        report_none_runs(directory)
        say(f"Start one: {up_command('up --detach', directory.path)}")
        sys.exit(1)
    return directory, state


def keys_for_all(
    config_file: str | None,
    overrides: tuple[str, ...],
    profile: str | None,
    level: str | None = None,
) -> dict[str, str]:
    """The given keys without those that each broker has for itself. A broker's own file may have
    them; an override of one is BadParameter, for it would have no effect. Checks them by
    `check_keys`."""
    from kafka08.embedded.broker import LISTENER_KEYS, OWN_KEYS

    for key in parse_overrides(overrides):
        if key in OWN_KEYS:
            reason = f"`up` sets {key} for each broker; use `kafka08 broker start` for one of yours"
            raise click.BadParameter(reason, param_hint="--override")
        if key in LISTENER_KEYS:
            reason = f"`up` chooses the port of {key}; use host.name and advertised.host.name"
            raise click.BadParameter(reason, param_hint="--override")
    config = read_config(config_file, overrides, options=broker_keys(level, profile))
    own_keys = OWN_KEYS + LISTENER_KEYS
    config = {key: value for key, value in config.items() if key not in own_keys}
    check_keys(config)
    return config


def check_keys(config: dict[str, str]) -> None:
    """Warn of keys that the brokers will not know or use, which their own logs alone would tell.
    ConfigError for a value that they would refuse."""
    from kafka08.broker.settings.config import BrokerConfig
    from kafka08.embedded.cluster_config import DEFAULTS

    own = {"broker.id": "0", "zookeeper.connect": "localhost:2181"}
    BrokerConfig({**DEFAULTS, **config, **own}).log_notes()


def say_running(directory: ClusterDirectory) -> None:
    """Say that nothing was started, and which of the running command's options had no effect."""
    context = click.get_current_context()
    unused = [
        max(option.opts, key=len)
        for option in context.command.params
        if option.name in CLUSTER_OPTIONS
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    say("The cluster is running already: nothing was started.")
    if unused:
        say(
            f"WARNING: {', '.join(unused)} had no effect; to start it with other options, stop it "
            f"first: {up_command('down', directory.path)}",
        )


def report_none_runs(directory: ClusterDirectory) -> None:
    """Say so, with the last error in the log of the previous cluster."""
    say(f"No cluster runs in {directory.path}")
    if (error := directory.last_error()) is not None:
        say(f"The last error in {directory.log}: {error}")


def broker_count(given: int | None, directory: ClusterDirectory | None) -> int:
    """The number of brokers to start. BadParameter for fewer than the directory has: partitions
    whose in-sync replicas are all on the others would lose messages."""
    kept = 0 if directory is None else directory.broker_count()
    if given is not None and given < kept and directory and directory.running() is None:
        raise click.BadParameter(
            f"{given}, but the cluster in {directory.path} has {kept} brokers, and the messages of "
            "a partition may be on any of them. Leave the option out, or give another --data-dir",
            param_hint="--brokers",
        )
    return given or kept or BROKERS


def check_level(directory: ClusterDirectory, config: dict[str, str]) -> None:
    """Say that the data has another level than a new cluster would have. BadParameter for a level
    below that of the data, which such brokers could not read."""
    from kafka08.embedded.cluster_config import kept_level

    kept, asked = kept_level(directory.path), config.get("api.level")
    if kept is not None and asked in LEVELS and (fault := level_fault(asked, kept)):
        raise click.BadParameter(
            f"{fault}. Leave the option out, or give another --data-dir than {directory.path}",
            param_hint="--level",
        )
    if asked is None and kept not in (None, str(NEWEST)):
        say(
            f"The brokers in {directory.path} stay at level {kept}, that of their data. --level "
            "raises it; nothing lowers it again."
        )


def check_ports(first: int, count: int, directory: ClusterDirectory | None) -> None:
    """BadParameter for a port of --port that is taken, or if the directory's brokers, which keep
    their addresses, have others."""
    from kafka08.embedded.broker import PROPERTIES
    from kafka08.embedded.ports import listen_fault, written_port

    for number in range(count):
        kept = None
        if directory is not None:
            kept = written_port(directory.path / f"broker-{number}" / PROPERTIES, "advertised.port")
        if kept not in {None, first + number}:
            reason = (
                f"{first}, but broker {number} of this directory keeps its port {kept}. Leave the "
                "option out, or give another --data-dir"
            )
        elif fault := listen_fault("127.0.0.1", first + number):
            reason = f"port {first + number}: {fault}"
        else:
            continue
        raise click.BadParameter(reason, param_hint="--port")


def run(
    brokers: int | None,
    zookeeper: ZooKeeperKind | None,
    config: dict[str, str],
    data_dir: Path | None,
    stopping: Event,
    control: tuple[str, int] | None = None,
    cuttable: bool = False,
    port: int | None = None,
) -> None:
    """Run the cluster in this process. A signal during its start takes effect after the start."""
    from kafka08.embedded import EmbeddedCluster
    from kafka08.embedded.detached import (
        ClusterDirectory,
        forget_foreground,
        remember_foreground,
    )

    if stopping.is_set():
        return
    directory = None if data_dir is None else ClusterDirectory(data_dir)
    count = broker_count(brokers, directory)
    if directory is not None and not directory.claim():
        show_cluster(await_ready(directory))
        say_running(directory)
        return
    if directory is not None:
        check_level(directory, config)
    # An interrupted start may leave a process behind that the guard does not know yet.
    if port is not None:
        check_ports(port, count, directory)
    first = FIRST_BROKER_PORT if port is None else port
    ports = [ZOOKEEPER_PORT, *range(first, first + count)]
    cluster = EmbeddedCluster(
        count, config, data_dir, zookeeper=zookeeper, ports=ports, cuttable=cuttable
    )
    if directory is None:
        directory = ClusterDirectory(cluster.data_dir)
        directory.claim()
        remember_foreground(directory.path)
    try:
        with cluster:
            if stopping.is_set():
                # Not announced: waiting processes must not take it for ready.
                say("Stopped while it was starting.")
            else:
                supervise(cluster, directory, control, stopping)
    except (KafkaError, OSError) as error:
        fail(error)  # before the directory is free: `up` then reads the reason
    finally:
        directory.release()
        forget_foreground(directory.path)


def supervise(
    cluster: EmbeddedCluster,
    directory: ClusterDirectory,
    address: tuple[str, int] | None,
    stopping: Event,
) -> None:
    """Watch a started cluster, and report the ends of its brokers."""
    from kafka08.embedded.control import ControlServer
    from kafka08.embedded.supervisor import Supervisor

    with ControlServer(directory.path) as control:
        supervisor = Supervisor(cluster, directory, control, partial(show_broker, directory.path))
        if address is not None:
            supervisor.http = serve_control(supervisor, directory, address)
        show_cluster(supervisor.announce())
        say("Ctrl-C stops the cluster.")
        try:
            supervisor.run(stopping.is_set)
        except KafkaError as error:
            # The whole error follows when all have stopped: without ZooKeeper brokers take a while.
            say(f"Stopping the cluster: {str(error).partition(';')[0]}")
            raise


def serve_control(
    supervisor: Supervisor, directory: ClusterDirectory, address: tuple[str, int]
) -> str:
    """Serve the cluster's verbs to other programs from now on; the server's address."""
    from kafka08.cli.http_server import serve_http
    from kafka08.embedded.control_app import ControlApp, write_token

    app = ControlApp(supervisor.verbs, write_token(directory.path))
    return serve_http(app, *address, "--control")


def control_token(state: ClusterState) -> str:
    """The file with the token of a cluster's control server."""
    from kafka08.embedded.control_app import TOKEN_FILE

    return str(Path(state.directory) / TOKEN_FILE)


def start_detached(
    data_dir: Path | None,
    brokers: int | None,
    zookeeper: ZooKeeperKind | None,
    config: dict[str, str],
    control: tuple[str, int] | None,
    cuttable: bool,
    port: int | None,
) -> ClusterState:
    """The cluster of the directory, started if needed. ClickException if it does not start."""
    from kafka08.embedded.cluster import choose_zookeeper
    from kafka08.embedded.detached import ClusterDirectory, default_directory
    from kafka08.embedded.directories import make_directory

    directory = ClusterDirectory(data_dir or default_directory())
    make_directory(directory.path)
    if directory.running() is not None:
        say_running(directory)
        return await_ready(directory)
    count = broker_count(brokers, directory)
    check_level(directory, config)
    command = [sys.executable, "-P", "-m", "kafka08.cli", "up", f"--brokers={count}"]
    command.append(f"--data-dir={directory.path}")
    kind = zookeeper or choose_zookeeper(directory.path, is_to_last=data_dir is not None)
    command.append(f"--zookeeper={kind}")
    command += [f"--override={key}={value}" for key, value in config.items()]
    if control is not None:
        command.append("--control=[{}]:{}".format(*control))
    if cuttable:
        command.append("--cuttable")
    if port is not None:
        command.append(f"--port={port}")
    with directory.open_log() as output:
        owner = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while owner.poll() is None:
            state = directory.running()
            if state is not None and state.is_ready:
                return state
            time.sleep(_POLL_S)
    except BaseException:  # Ctrl-C reaches this process alone
        say("Stopping the cluster.")
        owner.terminate()
        owner.wait()
        raise
    if owner.returncode == 0 and directory.running() is not None:
        return await_ready(directory)  # another `up` was faster
    raise click.ClickException(f"the cluster did not start:\n{directory.log.read_text().rstrip()}")


def await_ready(directory: ClusterDirectory) -> ClusterState:
    """Wait until the cluster that another process runs there is ready. ClickException if it
    ends."""
    while (state := directory.running()) is not None:
        if state.is_ready:
            return state
        time.sleep(_POLL_S)
    raise click.ClickException(f"the cluster in {directory.path} ended while it was starting")


def show_cluster(state: ClusterState) -> None:
    """Print addresses, data directory, lines to continue with, and the state of each broker."""
    if click.get_current_context().params.get("as_json"):
        show_json(asdict(state))
        return
    show(f"ZooKeeper  {state.zookeeper}")
    show(f"brokers    {state.bootstrap}")
    show(f"data       {state.directory}")
    if state.control:
        show(f"control    {state.control} with the token in {control_token(state)}")
    show(
        f"shell      export KAFKA08_ZOOKEEPER={quote(state.zookeeper)} "
        f"KAFKA08_BOOTSTRAP={quote(state.bootstrap)}"
    )
    show(
        'python     ConsumerConnector(ConsumerConfig(group_id="readers", '
        f'zookeeper_connect="{state.zookeeper}"))'
    )
    for broker in state.brokers:
        show_broker(Path(state.directory), broker, err=False)


def show_broker(directory: Path, broker: BrokerState, *, err: bool = True) -> None:
    """Print its state and, if it does not run, the command that starts it again."""
    (say if err else show)(str(broker))
    if broker.condition != "running":
        command = up_command(f"up restart {broker.id}", directory)
        (say if err else show)(f"Start it again: {command}")


def up_command(command: str, directory: Path) -> str:
    """The command for the cluster in `directory`, as short as possible."""
    try:
        is_found = open_directory(None).path == directory
    except (KafkaError, OSError):  # a user without a home, say
        is_found = False
    return f"kafka08 {command}" + ("" if is_found else f" --data-dir {quote(str(directory))}")
