// Package traces receives OpenTelemetry spans as a collector does, over either
// protocol, for tests.
package traces

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is a received span, with the attributes of its resource.
type Span struct {
	*tracepb.Span
	Resource map[string]string
}

// Attributes are those of the span.
func (s Span) Attributes() map[string]any { return values(s.GetAttributes()) }

// Trace is the hex id of the trace.
func (s Span) Trace() string { return hex.EncodeToString(s.GetTraceId()) }

// ID is the hex id of the span.
func (s Span) ID() string { return hex.EncodeToString(s.GetSpanId()) }

// ParentID is the hex id of the parent span, "" for none.
func (s Span) ParentID() string { return hex.EncodeToString(s.GetParentSpanId()) }

// Receiver is a collector that keeps the spans that it receives. It is safe for
// concurrent use.
type Receiver struct {
	collectorpb.UnimplementedTraceServiceServer

	// Address is host:port.
	Address string

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
}

// OverHTTP runs a receiver of OTLP over HTTP, with protobuf at /v1/traces, until
// the test ends.
func OverHTTP(tb testing.TB) *Receiver {
	tb.Helper()
	r := &Receiver{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.post)
	s := httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	r.Address = s.Listener.Addr().String()
	return r
}

// OverGRPC runs a receiver of OTLP over gRPC until the test ends.
func OverGRPC(tb testing.TB) *Receiver {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	r := &Receiver{Address: listener.Addr().String()}
	s := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(s, r)
	go func() { _ = s.Serve(listener) }()
	tb.Cleanup(s.Stop)
	return r
}

func (r *Receiver) post(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var batch collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil || request.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no ExportTraceServiceRequest", http.StatusBadRequest)
		return
	}
	r.keep(&batch, request.Header)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Export implements the gRPC service.
func (r *Receiver) Export(_ context.Context, batch *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	r.keep(batch, nil)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (r *Receiver) keep(batch *collectorpb.ExportTraceServiceRequest, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = append(r.headers, header)
	for _, from := range batch.GetResourceSpans() {
		resource := map[string]string{}
		for k, v := range values(from.GetResource().GetAttributes()) {
			if text, ok := v.(string); ok {
				resource[k] = text
			}
		}
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans = append(r.spans, Span{Span: s, Resource: resource})
			}
		}
	}
}

// Spans returns all received spans.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Headers returns the headers of the requests over HTTP.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.headers)
}

func values(attributes []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range attributes {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.GetKey()] = v.BoolValue
		case *commonpb.AnyValue_IntValue:
			out[kv.GetKey()] = v.IntValue
		}
	}
	return out
}
