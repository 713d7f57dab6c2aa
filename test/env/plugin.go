package env

import (
	"context"
	"os/exec"
	"path/filepath"
)

// Overrule runs "kubectl overrule" as this user: kubectl finds the plugin of
// "make build".
func (u *User) Overrule(args ...string) Result { return u.OverruleWith("", args...) }

// OverruleWith is Overrule with this stdin.
func (u *User) OverruleWith(stdin string, args ...string) Result {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	root, err := Repository(ctx)
	if err != nil {
		return Result{Stderr: err.Error(), Code: -1}
	}
	cmd := exec.CommandContext(ctx, u.KubectlPath(), append([]string{"overrule"}, args...)...)
	cmd.Env = u.Environ(filepath.Join(root, "bin"))
	return u.run(cmd, stdin)
}
