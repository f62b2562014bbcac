module emend.dev/clients/go

go 1.24.0

require (
	github.com/zeebo/xxh3 v1.0.2
	golang.org/x/text v0.31.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251029180050-ab9386a59fda
	google.golang.org/grpc v1.78.0
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	golang.org/x/net v0.47.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
