"""Server reflection: a generic gRPC client asks which services there are and what they speak.

Owns grpc.reflection.v1.ServerReflection and its twin v1alpha, whose messages have the same bytes;
every answer comes from the descriptors this release was built with. What is not there is an
ErrorResponse with NOT_FOUND inside the stream, as the protocol has it: the call itself goes on.
Refuses to show anything of the cluster: no name, no state.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from dataplane.engine.rpc import Stream
from dataplane.errors import GrpcCode
from dataplane.wire import node_pb2, reflection_pb2
from dataplane.wire import reflection_pb2 as wire
from headrace.wire import stream_pb2, usage_pb2

PATHS: Final = (
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)
_V1: Final = "grpc.reflection.v1"
_V1ALPHA: Final = "grpc.reflection.v1alpha"


class Missing(Exception):
    """There is no such thing; the text says what was asked for."""


class _File(NamedTuple):
    """One file: its serialised FileDescriptorProto and the names of its imports."""

    data: bytes
    imports: tuple[str, ...]


class Catalogue:
    """Files by name and by symbol, and the services among them."""

    def __init__(self, files: Iterable[FileDescriptorProto]) -> None:
        self._files: dict[str, _File] = {}
        self._file_of_symbol: dict[str, str] = {}
        self._messages: set[str] = set()
        services: set[str] = set()
        for file in files:
            data = file.SerializeToString(deterministic=True)
            self._files[file.name] = _File(data, tuple(file.dependency))
            for symbol in _symbols(file):
                self._file_of_symbol[symbol] = file.name
            self._messages.update(_messages(file))
            services.update(f"{file.package}.{service.name}" for service in file.service)
        self.services = tuple(sorted(services))

    def file_named(self, name: str) -> list[bytes]:
        """A file, then all it imports, each once. Raises Missing."""
        if name not in self._files:
            raise Missing(f"there is no file {name[:200]}; ask for a symbol, or list the services")
        names = [name]
        for found in names:
            names.extend(more for more in self._files[found].imports if more not in names)
        return [self._files[found].data for found in names]

    def file_of_symbol(self, symbol: str) -> list[bytes]:
        """The file that declares a fully qualified symbol, as `file_named`. Raises Missing."""
        name = self._file_of_symbol.get(symbol)
        if name is None:
            raise Missing(f"there is no symbol {symbol[:200]}; list the services to see what is")
        return self.file_named(name)

    def check_message(self, name: str) -> None:
        """Raises Missing unless there is a message of this name."""
        if name not in self._messages:
            raise Missing(f"there is no message {name[:200]}")


class ReflectionService:
    """Answers from one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def info(self, stream: Stream[wire.ServerReflectionRequest]) -> None:
        """One reply for each request, in order, until the client has sent its last."""
        while (request := await stream.receive()) is not None:
            reply = wire.ServerReflectionResponse(valid_host=request.host, original_request=request)
            try:
                self._answer(request, reply)
            except Missing as missing:
                reply.error_response.error_code = GrpcCode.NOT_FOUND
                reply.error_response.error_message = str(missing)
            await stream.send(reply)

    def _answer(
        self, request: wire.ServerReflectionRequest, reply: wire.ServerReflectionResponse
    ) -> None:
        kind = request.WhichOneof("message_request")
        catalogue = self._catalogue
        files = reply.file_descriptor_response.file_descriptor_proto
        if kind == "file_by_filename":
            files.extend(catalogue.file_named(request.file_by_filename))
        elif kind == "file_containing_symbol":
            files.extend(catalogue.file_of_symbol(request.file_containing_symbol))
        elif kind == "list_services":
            for name in catalogue.services:
                reply.list_services_response.service.add(name=name)
        elif kind == "all_extension_numbers_of_type":
            catalogue.check_message(request.all_extension_numbers_of_type)
            base = request.all_extension_numbers_of_type
            reply.all_extension_numbers_response.base_type_name = base
        elif kind == "file_containing_extension":
            extension = request.file_containing_extension
            raise Missing(
                f"{extension.containing_type[:200]} has no extension {extension.extension_number}"
            )
        else:
            reply.error_response.error_code = GrpcCode.INVALID_ARGUMENT
            reply.error_response.error_message = (
                "the request asks for nothing this release knows: ask for a file, a symbol or the "
                "services"
            )


def catalogue_of_node() -> Catalogue:
    """Everything a node speaks, with what that imports."""
    own = (stream_pb2, usage_pb2, node_pb2, reflection_pb2)
    files: dict[str, FileDescriptorProto] = {}
    waiting = [module.DESCRIPTOR for module in own]
    while waiting:
        descriptor = waiting.pop()
        if descriptor.name not in files:
            files[descriptor.name] = _proto(descriptor)
            waiting.extend(descriptor.dependencies)
    return Catalogue([*files.values(), _twin(files[reflection_pb2.DESCRIPTOR.name]), _health()])


def _proto(descriptor: FileDescriptor) -> FileDescriptorProto:
    proto = FileDescriptorProto()
    descriptor.CopyToProto(proto)
    return proto


def _twin(v1: FileDescriptorProto) -> FileDescriptorProto:
    """The same file under the older package, for clients that know only that."""
    text = v1.SerializeToString()
    twin = FileDescriptorProto.FromString(text)
    twin.package = _V1ALPHA
    twin.name = v1.name.replace("reflection.proto", "reflection_v1alpha.proto")
    for method in twin.service[0].method:
        method.input_type = method.input_type.replace(_V1, _V1ALPHA)
        method.output_type = method.output_type.replace(_V1, _V1ALPHA)
    for message in twin.message_type:
        for field in (found for found in message.field if found.type_name):
            field.type_name = field.type_name.replace(_V1, _V1ALPHA)
    return twin


def _health() -> FileDescriptorProto:
    """grpc.health.v1, which the shards serve without a stub of ours: Check alone."""
    package = ".grpc.health.v1"
    file = FileDescriptorProto(
        name="grpc/health/v1/health.proto", package="grpc.health.v1", syntax="proto3"
    )
    text, enum = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_ENUM
    once = FieldDescriptorProto.LABEL_OPTIONAL
    request = file.message_type.add(name="HealthCheckRequest")
    request.field.add(name="service", json_name="service", number=1, type=text, label=once)
    reply = file.message_type.add(name="HealthCheckResponse")
    status = reply.enum_type.add(name="ServingStatus")
    for number, name in enumerate(("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")):
        status.value.add(name=name, number=number)
    reply.field.add(
        name="status",
        json_name="status",
        number=1,
        type=enum,
        label=once,
        type_name=f"{package}.HealthCheckResponse.ServingStatus",
    )
    service = file.service.add(name="Health")
    service.method.add(
        name="Check",
        input_type=f"{package}.HealthCheckRequest",
        output_type=f"{package}.HealthCheckResponse",
    )
    return file


def _symbols(file: FileDescriptorProto) -> Iterator[str]:
    """Every fully qualified name a file declares."""
    prefix = file.package
    for service in file.service:
        yield f"{prefix}.{service.name}"
        yield from (f"{prefix}.{service.name}.{method.name}" for method in service.method)
    for enum in file.enum_type:
        yield from _of_enum(prefix, enum)
    for name, message in _walked(file):
        yield name
        yield from (f"{name}.{field.name}" for field in message.field)
        yield from (f"{name}.{choice.name}" for choice in message.oneof_decl)
        for enum in message.enum_type:
            yield from _of_enum(name, enum)


def _of_enum(prefix: str, enum: EnumDescriptorProto) -> Iterator[str]:
    """An enum and its values; values stand beside their enum, as in C."""
    yield f"{prefix}.{enum.name}"
    yield from (f"{prefix}.{value.name}" for value in enum.value)


def _messages(file: FileDescriptorProto) -> Iterator[str]:
    return (name for name, _ in _walked(file))


def _walked(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """Every message with its full name, the nested ones after their parent."""
    waiting = [(f"{file.package}.{message.name}", message) for message in file.message_type]
    for name, message in waiting:
        waiting.extend((f"{name}.{nested.name}", nested) for nested in message.nested_type)
        yield name, message
