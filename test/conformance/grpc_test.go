package conformance

import (
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	pb "sigs.k8s.io/gateway-api/conformance/echo-basic/grpcechoserver"
	"sigs.k8s.io/gateway-api/conformance/utils/grpc"

	"overrule.dev/overrule/internal/gateway"
)

// grpcClient routes gRPC calls, and answers as the backend would.
type grpcClient struct{ *server }

// Close implements grpc.Client.
func (grpcClient) Close() {}

// SendRPC implements grpc.Client.
func (c grpcClient) SendRPC(_ *testing.T, address string, expected grpc.ExpectedResponse, _ time.Duration) (*grpc.Response, error) {
	v := c.cluster.now()
	g, port, err := c.cluster.net.gateway(v, address, defaultPorts["http"])
	if err != nil {
		return nil, err
	}
	q := &gateway.Request{
		Transport: gateway.TransportHTTP, Port: port, Host: hostOnly(address), GRPC: true,
		Method: "POST", Path: "/gateway_api_conformance.echo_basic.grpcecho.GrpcEcho/" + method(&expected),
	}
	if m := expected.RequestMetadata; m != nil {
		if m.Authority != "" {
			q.Host = hostOnly(m.Authority)
		}
		for _, name := range slices.Sorted(maps.Keys(m.Metadata)) {
			q.Headers = append(q.Headers, gateway.Field{Name: name, Value: m.Metadata[name]})
		}
	}
	served := c.route(v, g, q)
	if served.Route == nil {
		return &grpc.Response{Code: codes.Unimplemented}, nil
	}
	r, err := ruleOf(served.Route, served.Rule)
	if err != nil {
		return nil, err
	}
	to := c.endpointOf(v, served, r)
	if to == nil {
		return &grpc.Response{Code: codes.Unavailable}, nil
	}
	return &grpc.Response{Response: &pb.EchoResponse{Assertions: &pb.Assertions{
		FullyQualifiedMethod: q.Path,
		Context:              &pb.Context{Namespace: to.pod.Namespace, Pod: to.pod.Name},
	}}}, nil
}

func method(expected *grpc.ExpectedResponse) string {
	switch {
	case expected.EchoRequest != nil:
		return "Echo"
	case expected.EchoTwoRequest != nil:
		return "EchoTwo"
	default:
		return "EchoThree"
	}
}
