package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cliflag"
	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/webhookconfig"
)

// The exit codes of the canary command.
const (
	exitFailed = 1
	exitNotRun = 2
)

// exitError is an error with an exit code.
type exitError struct {
	error

	code int
}

// Unwrap implements errors.Is and errors.As.
func (e *exitError) Unwrap() error { return e.error }

// ExitCode returns the exit code for an error of the command: 1, unless the error
// has another one.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}

// notRun returns err with the exit code of a canary that could not run.
func notRun(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{err, exitNotRun}
}

type canaryOptions struct {
	kubeconfig, namespace, output string
	enforcement                   guard.Enforcement
	timeout                       time.Duration
}

// canaryCommand returns the command that runs the canary once.
func canaryCommand() *cobra.Command {
	var o canaryOptions
	cmd := &cobra.Command{
		Use:   "canary",
		Short: "Verify with dry runs that writes are evaluated",
		Long: `canary sends dry runs through the API server: a PolicyProfile that must be
rejected, one that must pass and, with --canary-namespace, an HTTPRoute without
parents. Nothing is stored. You must be allowed to create these objects.

Exit codes: 0 passed, 1 failed, 2 could not run.`,
		Args: func(cmd *cobra.Command, args []string) error { return notRun(cobra.NoArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return notRun(err)
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cliflag.EnumVar(f, &o.enforcement, "enforcement", guard.EnforceDeny, guard.Enforcements, "enforcement that the servers run with: deny, warn or audit")
	f.StringVar(&o.namespace, "canary-namespace", "", "namespace in which to also create a route; not the namespace of the servers (default: none)")
	f.DurationVar(&o.timeout, "timeout", canary.TimeoutFor(webhookconfig.DefaultTimeout), "how long to wait for responses; a webhook that hangs takes up to twice the --webhook-timeout of the servers")
	cliflag.EnumVarP(f, &o.output, "output", "o", "text", []string{"text", "json"}, "output format: text or json")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return notRun(cliflag.Error(err)) })
	return cmd
}

func (o canaryOptions) validate() error {
	return flagErrors([]flagCheck{
		{"canary-namespace", o.namespace == "" || isLabel(o.namespace), mustBeLabel},
		{"timeout", o.timeout > 0, "must be above 0"},
	})
}

func (o canaryOptions) run(cmd *cobra.Command) error {
	c, err := o.canary()
	if err != nil {
		return notRun(err)
	}
	r := c.Run(cmd.Context())
	if err := write(cmd.OutOrStdout(), r, o.output); err != nil {
		return notRun(fmt.Errorf("write result: %w", err))
	}
	switch r.Outcome {
	case canary.Passed:
		return nil
	case canary.Failed:
		return &exitError{errors.New("canary failed"), exitFailed}
	default:
		return &exitError{errors.New("canary could not run"), exitNotRun}
	}
}

func (o canaryOptions) canary() (*canary.Canary, error) {
	cfg, err := loadRESTConfig(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "overrule-canary/" + build.Read().Version
	return canary.New(cfg, canary.Options{
		Enforcement: enforcementActions[o.enforcement], Namespace: o.namespace, Configuration: webhookConfigName, Timeout: o.timeout,
	})
}

func write(out io.Writer, r canary.Result, format string) error {
	if format == "text" {
		_, err := io.WriteString(out, r.Text())
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}
