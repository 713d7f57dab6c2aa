// Command overrule is the admission server. It evaluates writes of policies,
// routes and gateways by what they do to effective policies.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"overrule.dev/overrule/internal/server"
)

func main() {
	if err := server.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "overrule:", err)
		os.Exit(1)
	}
}
