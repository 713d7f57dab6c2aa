// Package inprocess runs kubectl's own commands inside the process of a test.
// They have the output and the exit codes of the program, but a call takes some
// milliseconds of CPU where a new process takes 50 to 500: it does not start a
// process or read the discovery documents again.
package inprocess

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/create"
	deletecmd "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/replace"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/validation"

	"overrule.dev/overrule/test/env"
)

// Client runs commands as one user. It is safe for concurrent use.
type Client struct {
	user      *env.User
	discovery *discovery
}

// New returns a client of a user's kubeconfig.
func New(user *env.User) (*Client, error) {
	d, err := newDiscovery(user.Config)
	if err != nil {
		return nil, err
	}
	return &Client{user: user, discovery: d}, nil
}

// Kubectl runs a command. A command that is not in-process, such as a plugin,
// runs as the program.
func (c *Client) Kubectl(args ...string) env.Result { return c.KubectlWith("", args...) }

// KubectlWith runs a command with a manifest for "-f -".
func (c *Client) KubectlWith(stdin string, args ...string) env.Result {
	var out, errors bytes.Buffer
	root := c.root(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors})
	if command, _, err := root.Find(args); err != nil || command == root {
		return c.user.KubectlWith(stdin, args...)
	}
	if i := slices.Index(args, "-"); i > 0 {
		file, err := c.file(stdin)
		if err != nil {
			return env.Result{Stderr: err.Error(), Code: -1}
		}
		defer func() { _ = os.Remove(file) }()
		args = slices.Clone(args)
		args[i] = file
	}
	code := run(root, args, &errors)
	return env.Result{Stdout: out.String(), Stderr: errors.String(), Code: code}
}

// Apply runs "kubectl apply" on a manifest, with further arguments.
func (c *Client) Apply(manifest string, args ...string) env.Result {
	return c.KubectlWith(manifest, append([]string{"apply", "-f", "-"}, args...)...)
}

// file writes the input of a command to a file: cli-runtime reads "-" from the
// stdin of the process, which all commands share.
func (c *Client) file(content string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(c.user.Kubeconfig), "stdin-*.yaml")
	if err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(content); err != nil {
		return "", fmt.Errorf("write a manifest: %w", err)
	}
	return f.Name(), nil
}

// commandLimit ends a request or watch that hangs.
const commandLimit = 3 * time.Minute

// commands are those that run in-process.
var commands = map[string]func(cmdutil.Factory, genericiooptions.IOStreams) *cobra.Command{
	"annotate": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return annotate.NewCmdAnnotate("kubectl", f, s)
	},
	"apply": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		command := apply.NewCmdApply("kubectl", f, s)
		// Patches use the compiled types: reading the schema of core/v1 takes 0.3
		// s of CPU.
		_ = command.Flags().Set("openapi-patch", "false")
		return command
	},
	"create": create.NewCmdCreate,
	"delete": deletecmd.NewCmdDelete,
	"get": func(f cmdutil.Factory, s genericiooptions.IOStreams) *cobra.Command {
		return get.NewCmdGet("kubectl", f, s)
	},
	"label":   label.NewCmdLabel,
	"patch":   patch.NewCmdPatch,
	"replace": replace.NewCmdReplace,
}

// exit is the value that a failing command panics with, instead of ending the
// process.
type exit struct {
	message string
	code    int
}

func init() {
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(exit{message, code}) })
}

// run returns the exit code.
func run(root *cobra.Command, args []string, errors *bytes.Buffer) (code int) {
	defer func() {
		failed := recover()
		if failed == nil {
			return
		}
		e, ok := failed.(exit)
		if !ok {
			panic(failed)
		}
		if e.message != "" {
			errors.WriteString(strings.TrimSuffix(e.message, "\n") + "\n")
		}
		code = e.code
	}()
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		return 1
	}
	return 0
}

// root returns "kubectl" with the in-process commands.
func (c *Client) root(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(false).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.QPS, config.Timeout = -1, commandLimit
		config.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
	flags.KubeConfig = &c.user.Kubeconfig
	root := &cobra.Command{Use: "kubectl", SilenceUsage: true}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags.AddFlags(root.PersistentFlags())
	f := factory{cmdutil.NewFactory(&getter{flags, c.discovery})}
	for _, command := range commands {
		root.AddCommand(command(f, streams))
	}
	return root
}

// factory leaves the validation of fields to the API server, without reading its
// schema first.
type factory struct{ cmdutil.Factory }

// Validator implements cmdutil.Factory.
func (factory) Validator(string) (validation.Schema, error) { return validation.NullSchema{}, nil }
