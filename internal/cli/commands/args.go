package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

var errName = errors.New("an object must be given as KIND/NAME")

// objectArgs reads the arguments KIND/NAME or KIND NAME, and after them RULE if the command takes
// one.
func (q *question) objectArgs(required, rule bool) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			if required {
				return errName
			}
			return nil
		}
		kind, name, found := strings.Cut(args[0], "/")
		rest := args[1:]
		if !found && len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
		if kind == "" || name == "" || found && strings.Contains(name, "/") {
			return fmt.Errorf("invalid argument %q: %w", strings.Join(args, " "), errName)
		}
		q.kind, q.name = kind, name
		if rule && len(rest) > 0 {
			q.ruleText, rest = rest[0], rest[1:]
		}
		if len(rest) > 0 {
			return fmt.Errorf("unexpected argument %q", rest[0])
		}
		return nil
	}
}

// withUsage appends the usage line of the command to errors about its arguments.
func withUsage(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := args(cmd, given); err != nil {
			return fmt.Errorf("%w; usage: %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
		}
		return nil
	}
}
