package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/lookup"
)

// requestFlags describe a request.
type requestFlags struct {
	request         string
	headers         []string
	gateway         string
	port            int32
	sni             string
	clientNamespace string

	given, portGiven bool // --request and --port are set
}

const requestHelp = `With --request, in place of KIND/NAME, the paths are those of the rule that serves a
request, at each gateway that it can come in by; the gateway, the listener, the route
and the rule are shown above. What the answer depends on and cannot be read from the
objects is listed as an assumption. If nothing serves the request, the output says how
far it comes, and the exit code is 1.

The request is a method, GET by default, and a URL. Its scheme is http, https, grpc,
grpcs (the path is /SERVICE/METHOD), tls, tcp or udp. The port of the URL is that of the
listener. With --client-namespace, the request is one of a client in the mesh, and its
host that of a Service: NAME.NAMESPACE, NAME.NAMESPACE.svc.cluster.local, or NAME in the
namespace of the client.`

func (f *requestFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.request, "request", "", "show the rule that serves this request, such as 'GET https://shop.example.com/cart?x=1' or tcp://:5432")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "a header of the request, 'name: value' (repeatable)")
	flags.StringVar(&f.gateway, "gateway", "", "look only at this gateway, given as NAMESPACE/NAME or as NAME in the namespace")
	flags.Int32Var(&f.port, "port", 0, "the port of the listener, if it is not the port of the URL")
	flags.StringVar(&f.sni, "sni", "", "the server name (SNI) of the TLS connection, if it is not the host")
	flags.StringVar(&f.clientNamespace, "client-namespace", "", "the namespace of a client in the mesh, whose request goes to a Service")
}

// args validates the arguments: with --request there are none, else other validates
// them.
func (f *requestFlags) args(other cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		f.given, f.portGiven = cmd.Flags().Changed("request"), cmd.Flags().Changed("port")
		if f.given && len(args) > 0 {
			return fmt.Errorf("invalid --request: must not be used with an object (%s)", strings.Join(args, " "))
		}
		for _, name := range []string{"header", "gateway", "port", "sni", "client-namespace"} {
			switch {
			case !cmd.Flags().Changed(name):
			case !f.given:
				return fmt.Errorf("invalid --%s: must be used with --request", name)
			case f.value(name) == "":
				return fmt.Errorf("invalid --%s: must not be empty", name)
			}
		}
		if f.given {
			return nil
		}
		return other(cmd, args)
	}
}

func (f *requestFlags) value(name string) string {
	switch name {
	case "gateway":
		return f.gateway
	case "sni":
		return f.sni
	case "client-namespace":
		return f.clientNamespace
	default:
		return "set"
	}
}

// lookup returns the request to look up.
func (f *requestFlags) lookup() *lookup.Request {
	r := &lookup.Request{
		Line: f.request, Headers: f.headers, Gateway: f.gateway, ServerName: f.sni, ClientNamespace: f.clientNamespace,
		Name: requestFlagName,
	}
	if f.portGiven {
		r.Port = &f.port
	}
	return r
}

// requestFlagName returns the flag for a field of a request.
func requestFlagName(f lookup.Field) string {
	switch f {
	case lookup.FieldGateway:
		return "--gateway"
	case lookup.FieldPort:
		return "--port"
	case lookup.FieldServerName:
		return "--sni"
	case lookup.FieldClientNamespace:
		return "--client-namespace"
	default:
		return "--request"
	}
}
