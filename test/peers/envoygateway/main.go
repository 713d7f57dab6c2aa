// Command envoygateway runs Envoy Gateway's own translator, for the tests of test/peers: it
// reads worlds from stdin, one JSON document each, and writes what the translator makes of
// them to stdout, one document each.
//
// The path of the module is below that of Envoy Gateway, which lets it import the
// translator's internal packages.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/gatewayapi"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/wasm"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r resource.Resources
		if err := decoder.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := encoder.Encode(translate(&r)); err != nil {
			return err
		}
	}
}

// translate translates objects that are in the form of Envoy Gateway's golden inputs.
// They are sorted, as those of an API server are.
func translate(r *resource.Resources) *gatewayapi.TranslateResult {
	r.Sort()
	t := gatewayapi.Translator{
		GatewayControllerName:   egv1a1.GatewayControllerName,
		GatewayClassName:        "envoy-gateway-class",
		GlobalRateLimitEnabled:  true,
		EnvoyPatchPolicyEnabled: true,
		BackendEnabled:          true,
		ControllerNamespace:     "envoy-gateway-system",
		MergeGateways:           gatewayapi.IsMergeGatewaysEnabled(r),
		MergeBackends:           gatewayapi.ResolveMergeBackendsConfig(r),
		WasmCache:               modules{},
		Logger:                  logging.DefaultLogger(io.Discard, egv1a1.LogLevelError),
	}
	result, _ := t.Translate(r) // errors are in the status, too
	return result
}

// modules stands for the modules of Wasm extensions, which are not downloaded.
type modules struct{}

var _ wasm.Cache = modules{}

func (modules) Start(context.Context) {}

func (modules) Get(url string, _ *wasm.GetOptions) (served, checksum string, err error) {
	return url, "checksum", nil
}
