package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/lookup"
)

// requestFlags describe a request.
type requestFlags struct {
	lookup.Request
	port  int32
	given bool // --request is set
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

// add adds the flags. With them, a command has no arguments.
func (f *requestFlags) add(cmd *cobra.Command) {
	cmd.Args = f.args(cmd.Args)
	flags := cmd.Flags()
	flags.StringVar(&f.Line, "request", "", "show the rule that serves this request, such as 'GET https://shop.example.com/cart?x=1' or tcp://:5432")
	flags.StringArrayVarP(&f.Headers, "header", "H", nil, "a header of the request, 'name: value' (repeatable)")
	flags.StringVar(&f.Gateway, "gateway", "", "look only at this gateway, given as NAMESPACE/NAME or as NAME in the namespace")
	flags.Int32Var(&f.port, "port", 0, "the port of the listener, if it is not the port of the URL")
	flags.StringVar(&f.ServerName, "sni", "", "the server name (SNI) of the TLS connection, if it is not the host")
	flags.StringVar(&f.ClientNamespace, "client-namespace", "", "the namespace of a client in the mesh, whose request goes to a Service")
}

// args validates the arguments: with --request there are none, else other validates
// them.
func (f *requestFlags) args(other cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		f.given, f.Names = cmd.Flags().Changed("request"), requestFlagNames
		if cmd.Flags().Changed("port") {
			f.Port = &f.port
		}
		if f.given && len(args) > 0 {
			return fmt.Errorf("invalid --request: must not be used with an object (%s)", strings.Join(args, " "))
		}
		for _, name := range []string{"header", "gateway", "port", "sni", "client-namespace"} {
			switch {
			case !cmd.Flags().Changed(name):
			case !f.given:
				return fmt.Errorf("invalid --%s: must be used with --request", name)
			case cmd.Flags().Lookup(name).Value.String() == "":
				return fmt.Errorf("invalid --%s: must not be empty", name)
			}
		}
		if f.given {
			return nil
		}
		return other(cmd, args)
	}
}

// requestFlagNames are the flags for the fields of a request.
var requestFlagNames = lookup.Names{
	Line: "--request", Gateway: "--gateway", Port: "--port", ServerName: "--sni", ClientNamespace: "--client-namespace",
}
