"""The same service by two gRPC servers: grpc_echo.py ours|grpcio PORT

`Predict` reads a `PredictRequest`, and answers with what `Work` makes of it after a task on the event loop has done the
work of a worker: the same function for both, so that what differs is the layer underneath.
"""

import asyncio
import sys

import uvloop

from glowplug.serve.wire import predict_message
from glowplug.serve.wire.limits import Limits
from glowplug.serve.wire.messages import serving

PATH = "/tensorflow.serving.PredictionService/Predict"
LIMITS = Limits()


class Work:
    """Waits for calls and answers those that have come, together, as a group of workers does."""

    def __init__(self):
        self._waiting = []
        self._scheduled = False

    async def predict(self, data):
        request = serving("PredictRequest").FromString(data)
        call = predict_message.read(request, LIMITS)
        outputs = await self._run(call.inputs)
        response = predict_message.write(outputs)
        response.model_spec.name = call.model_spec.name
        return response.SerializeToString()

    def _run(self, inputs):
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((inputs, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._answer)
        return future

    def _answer(self):
        waiting, self._waiting, self._scheduled = self._waiting, [], False
        for inputs, future in waiting:
            if not future.done():
                future.set_result({"y": next(iter(inputs.values())).reshape(-1)[:10]})


async def ours(port, work):
    from glowplug.serve.log import Log
    from glowplug.serve.rpc.methods import Method
    from glowplug.serve.rpc.server import RpcServer

    async def predict(data, call):
        return await work.predict(data)

    rpc = RpcServer({PATH: Method(unary=predict)}, LIMITS, Log(as_json=True, access=False))
    server = await asyncio.get_running_loop().create_server(rpc.connection, "127.0.0.1", port)
    await server.serve_forever()


async def grpcio(port, work):
    import grpc

    async def predict(data, context):
        return await work.predict(data)

    service, _, method = PATH[1:].partition("/")
    handler = grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(predict)})
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


uvloop.run({"ours": ours, "grpcio": grpcio}[sys.argv[1]](int(sys.argv[2]), Work()))
