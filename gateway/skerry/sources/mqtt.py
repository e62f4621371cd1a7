"""What an MQTT broker passes on: ``mqtt://user:{secret:plant}@broker:1883/plant/+/air``, also ``mqtts``. The path is the topic.

Messages are asked for with QoS 1 and acknowledged once their rows are durable in the log. The broker keeps for us, for as long as
``keep=`` says, what comes while the gateway is away. So each message that was sent with QoS 1 comes at least once; it comes again where
the broker had not heard of it before a connection or the gateway ended.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import unquote

import aiomqtt
import msgspec
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from skerry.sources.certificates import distrust, trusted
from skerry.sources.http_polling import seconds
from skerry.sources.stream_type import AddressError, Read, Sensor, StreamType, Value

#: Messages that a broker sends ahead of their acknowledgement, and that are handed on at a time.
AHEAD = 4096
#: Where nothing is said, in s.
KEEP_S = 3600.0
_CONNECT_S = 10.0


class Mqtt(StreamType):
    """A row has the fields of its message's object, and ``topic``; a message that is no object is ``value``."""

    options: ClassVar[frozenset[str] | None] = frozenset({"format", "keep", "client"})
    reads_tuple: ClassVar[bool] = False
    own_formats: ClassVar[frozenset[str]] = frozenset({"text"})

    async def init(self, sensor: Sensor) -> None:
        """Connect and subscribe."""
        url, options = sensor.url, sensor.options
        try:
            host, port = url.hostname, url.port
        except ValueError:
            host = port = None
        topic = unquote(url.path.removeprefix("/"))
        if not host or not topic:
            raise AddressError(
                f"'{sensor.address}' names no host and topic: write mqtt://127.0.0.1:1883/plant/+/air"
            )
        self._format = options.get("format", "json")
        keep_s = 0.0 if sensor.trial else seconds(options.get("keep", f"{KEEP_S}s"), "keep")
        self._json = msgspec.json.Decoder(float_hook=Decimal)
        self._flying: deque[aiomqtt.Message] = deque()
        self._acknowledged = 0
        self._calls_itself = options.get("client", "")
        tls = url.scheme.lower() == "mqtts"
        self._client = aiomqtt.Client(
            host,
            port or (8883 if tls else 1883),
            username=unquote(url.username) if url.username else None,
            password=unquote(url.password) if url.password else None,
            identifier=options.get("client") or None
            if sensor.trial
            else options.get("client", _name(sensor)),
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=sensor.trial,
            timeout=_CONNECT_S,
            properties=_properties(keep_s),
            tls_context=trusted() if tls else None,
            # More are only of those that are sent without asking whether they came.
            max_queued_incoming_messages=4 * AHEAD,
        )
        # The library has no word of its own for acknowledging later.
        self._broker = self._client._client
        self._broker.manual_ack_set(True)
        self._opened = False
        try:
            await self._client.__aenter__()
            self._opened = True
            # What the broker retains comes with a subscription that it did not have, and not with each connection.
            kept = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            [granted] = await self._client.subscribe(topic, options=kept)
            if getattr(granted, "is_failure", False):
                raise ConnectionError(f"the broker refuses topic '{topic}': {granted}")
        except aiomqtt.MqttError as error:
            raise _away(error, host) from None
        except ValueError as error:
            raise AddressError(f"'{topic}' is no topic: {error}") from None
        self._messages = self._client.messages

    async def read(self) -> Read:
        """The messages that have come."""
        try:
            found = [await anext(self._messages)]
            while len(self._messages) and len(found) < AHEAD:
                found.append(await anext(self._messages))
        except aiomqtt.MqttError as error:
            found_out = _away(error, "the broker")
            if self._calls_itself:
                # Why a broker hangs up the library does not tell.
                said = f"{found_out}: a broker hangs up where client={self._calls_itself} calls once more"
                raise ConnectionError(said) from None
            raise found_out from None
        self._flying.extend(found)
        return [self._value(message) for message in found]

    def _value(self, message: aiomqtt.Message) -> Value:
        payload = (
            message.payload if isinstance(message.payload, bytes) else str(message.payload or "").encode()
        )
        topic = str(message.topic)
        if self._format == "csv":
            return payload
        if self._format == "text":
            return {"value": payload.decode(errors="replace"), "topic": topic}
        try:
            found: Any = self._json.decode(payload)
        except (msgspec.DecodeError, ValueError, ArithmeticError, RecursionError):
            # As a line that is no JSON: counted, and shown.
            return payload
        row: Mapping[str, Any] = found if isinstance(found, dict) else {"value": found}
        return row if any(name.lower() == "topic" for name in row) else {**row, "topic": topic}

    def kept(self, values: int) -> None:
        """Their messages are acknowledged."""
        while self._acknowledged < values and self._flying:
            message = self._flying.popleft()
            self._acknowledged += 1
            if message.qos:
                self._broker.ack(message.mid, message.qos)

    async def close(self) -> None:
        """Hang up; the broker keeps what comes."""
        if getattr(self, "_opened", False):
            self._opened = False
            with suppress(aiomqtt.MqttError):
                await self._client.__aexit__(None, None, None)


def _name(sensor: Sensor) -> str:
    """What the broker knows this source by; other gateways, and other sources of this one, have other names."""
    return f"skerry-{hashlib.sha256(sensor.identity.encode()).hexdigest()[:16]}"


def _properties(keep_s: float) -> Properties:
    found = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    found.SessionExpiryInterval = min(round(keep_s), 0xFFFFFFFE)
    found.ReceiveMaximum = AHEAD
    return found


def _away(error: aiomqtt.MqttError, host: str) -> ConnectionError:
    cause = error.__cause__ or error
    if isinstance(cause, ConnectionRefusedError):
        return ConnectionRefusedError()
    return ConnectionError(distrust(error, host) or str(error) or type(error).__name__)
