// Command overrule is the admission server: it judges writes of policies,
// routes and gateways by what they do to effective policies.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "overrule:", err)
		os.Exit(exitCode(err))
	}
}
