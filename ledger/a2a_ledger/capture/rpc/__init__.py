"""gRPC under the guard: interceptors for `grpc.aio`, which decide, capture and record as for every other binding."""
