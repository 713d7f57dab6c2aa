package env

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Result is the output of a command.
type Result struct {
	Stdout, Stderr string
	// Code is the exit code, or -1 if the command could not be run or was killed;
	// Stderr then has the reason.
	Code int
}

// commandLimit stops a command that hangs, so that a test ends with its output.
const commandLimit = 3 * time.Minute

// Kubectl runs the real kubectl as this user.
func (u *User) Kubectl(args ...string) Result { return u.KubectlWith("", args...) }

// KubectlWith runs the real kubectl as this user, with this stdin.
func (u *User) KubectlWith(stdin string, args ...string) Result {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	return u.run(exec.CommandContext(ctx, u.KubectlPath(), args...), stdin)
}

// Apply runs kubectl apply on a manifest, with further arguments.
func (u *User) Apply(manifest string, args ...string) Result {
	return u.KubectlWith(manifest, append([]string{"apply", "-f", "-"}, args...)...)
}

func (u *User) run(cmd *exec.Cmd, stdin string) Result {
	var stdout, stderr bytes.Buffer
	if cmd.Env == nil {
		cmd.Env = u.Environ()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Result{Stdout: stdout.String(), Stderr: stderr.String() + err.Error(), Code: -1}
	}
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// KubectlPath is the path of this user's kubectl.
func (u *User) KubectlPath() string { return u.assets.path("kubectl") }

// Environ returns the environment of this user's commands: its own home and
// kubeconfig, and a PATH of kubectl, the given folders (for plugins), and the
// PATH of this process.
func (u *User) Environ(folders ...string) []string {
	path := append([]string{string(u.assets)}, folders...)
	path = append(path, os.Getenv("PATH"))
	own := map[string]string{
		"PATH":       strings.Join(path, string(filepath.ListSeparator)),
		"HOME":       u.home,
		"KUBECONFIG": u.Kubeconfig,
	}
	var environ []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if _, ours := own[name]; !ours && !strings.HasPrefix(name, "KUBE") {
			environ = append(environ, entry)
		}
	}
	for _, name := range []string{"PATH", "HOME", "KUBECONFIG"} {
		environ = append(environ, name+"="+own[name])
	}
	return environ
}
