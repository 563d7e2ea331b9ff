"""Server reflection, as a client without our stubs uses it."""

from collections.abc import Iterable, Iterator

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from dataplane.services.reflection import PATHS, Missing, catalogue_of_node
from dataplane.wire import reflection_pb2 as wire
from tests.support.builders.node_objects import VIEWER, furnish, topic_spec
from tests.support.processes.node_process import NodeProcess

SERVICES = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "headrace.node.v1.Admin",
    "headrace.stream.v1.Cluster",
    "headrace.stream.v1.Groups",
    "headrace.stream.v1.Stream",
]
SYMBOLS = [
    "headrace.stream.v1.Cluster",
    "headrace.stream.v1.ProduceRequest",
    "headrace.stream.v1.ProduceRequest.batch",
    "headrace.stream.v1.FetchStatus",
    "headrace.stream.v1.SessionEvent.message",
    "headrace.node.v1.DeletedTopicRow",
    "grpc.health.v1.HealthCheckResponse.ServingStatus",
    "grpc.health.v1.HealthCheckResponse.SERVING",
    "grpc.reflection.v1alpha.ErrorResponse",
    "google.protobuf.Any",
]


def _pool(files: Iterable[bytes]) -> DescriptorPool:
    """What a client makes of the files: imports first."""
    pool = DescriptorPool()
    for data in reversed(list(files)):
        pool.AddSerializedFile(data)
    return pool


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_kind_of_symbol_is_found_in_a_file_that_stands_on_its_own(symbol: str) -> None:
    files = catalogue_of_node().file_of_symbol(symbol)
    assert _pool(files).FindFileContainingSymbol(symbol).name == (
        FileDescriptorProto.FromString(files[0]).name
    )


def test_a_method_is_found_in_the_file_of_its_service() -> None:
    catalogue = catalogue_of_node()
    service = "headrace.stream.v1.Cluster"
    assert catalogue.file_of_symbol(f"{service}.Describe") == catalogue.file_of_symbol(service)


def test_a_file_comes_with_all_it_imports_each_once() -> None:
    names = [
        FileDescriptorProto.FromString(data).name
        for data in catalogue_of_node().file_named("dataplane/wire/node.proto")
    ]
    assert names == [
        "dataplane/wire/node.proto",
        "headrace/wire/stream.proto",
        "google/protobuf/any.proto",
    ]


def test_what_is_not_there_is_missing_by_name() -> None:
    catalogue = catalogue_of_node()
    for look in (catalogue.file_named, catalogue.file_of_symbol, catalogue.check_message):
        with pytest.raises(Missing, match=r"headrace\.guess"):
            look("headrace.guess")


# ---- over the wire ----


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("reflection")) as running:
        furnish(running)
        running.admin().apply(topic_spec("seen"))
        yield running


def _ask(
    node: NodeProcess,
    path: str,
    *requests: wire.ServerReflectionRequest,
    key: str = VIEWER,
) -> list[wire.ServerReflectionResponse]:
    call = node.channel.stream_stream(
        path,
        request_serializer=wire.ServerReflectionRequest.SerializeToString,
        response_deserializer=wire.ServerReflectionResponse.FromString,
    )
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    return list(call(iter(requests), timeout=120, metadata=metadata))


@pytest.mark.parametrize("path", PATHS)
def test_both_versions_list_the_services_and_give_their_files(node: NodeProcess, path: str) -> None:
    listed, file, twin = _ask(
        node,
        path,
        wire.ServerReflectionRequest(host="here", list_services="*"),
        wire.ServerReflectionRequest(file_by_filename="headrace/wire/stream.proto"),
        wire.ServerReflectionRequest(file_containing_symbol=path.split("/")[1]),
    )
    assert [row.name for row in listed.list_services_response.service] == SERVICES
    assert (listed.valid_host, listed.original_request.list_services) == ("here", "*")
    for reply in (file, twin):
        assert _pool(reply.file_descriptor_response.file_descriptor_proto)


@pytest.mark.parametrize("path", PATHS)
def test_what_is_asked_in_vain_is_answered_inside_the_stream(node: NodeProcess, path: str) -> None:
    extension = wire.ExtensionRequest(
        containing_type="headrace.stream.v1.Error", extension_number=7
    )
    replies = _ask(
        node,
        path,
        wire.ServerReflectionRequest(file_by_filename="nothing.proto"),
        wire.ServerReflectionRequest(file_containing_symbol="x" * 5000),
        wire.ServerReflectionRequest(file_containing_extension=extension),
        wire.ServerReflectionRequest(all_extension_numbers_of_type="headrace.Guess"),
        wire.ServerReflectionRequest(),
        wire.ServerReflectionRequest(all_extension_numbers_of_type="headrace.stream.v1.Error"),
    )
    not_found, invalid = grpc.StatusCode.NOT_FOUND.value[0], grpc.StatusCode.INVALID_ARGUMENT
    errors = [reply.error_response for reply in replies[:5]]
    assert [error.error_code for error in errors] == [not_found] * 4 + [invalid.value[0]]
    assert all(0 < len(error.error_message) < 400 for error in errors)
    numbers = replies[5].all_extension_numbers_response
    assert (numbers.base_type_name, list(numbers.extension_number)) == (
        "headrace.stream.v1.Error",
        [],
    )


def test_a_client_without_stubs_can_call_what_it_learned(node: NodeProcess) -> None:
    (reply,) = _ask(
        node,
        PATHS[1],
        wire.ServerReflectionRequest(file_containing_symbol="headrace.stream.v1.Cluster"),
    )
    pool = _pool(reply.file_descriptor_response.file_descriptor_proto)
    method = pool.FindServiceByName("headrace.stream.v1.Cluster").FindMethodByName("Describe")
    request = GetMessageClass(method.input_type)
    call: grpc.UnaryUnaryMultiCallable[Message, Message] = node.channel.unary_unary(
        "/headrace.stream.v1.Cluster/Describe",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    answer = call(request(topics=["seen"]), metadata=(("authorization", f"Bearer {VIEWER}"),))
    assert 'name: "default/seen"' in str(answer)


@pytest.mark.parametrize("path", PATHS)
def test_reflection_needs_a_key(node: NodeProcess, path: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        _ask(node, path, wire.ServerReflectionRequest(list_services=""), key="")
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
