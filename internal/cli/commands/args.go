package commands

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/merge"
)

var errName = errors.New("an object must be given as KIND/NAME")

// parseObject parses KIND/NAME or KIND NAME from the arguments, and returns the
// remaining ones.
func parseObject(args []string) (kind, name string, rest []string, err error) {
	kind, name, found := strings.Cut(args[0], "/")
	rest = args[1:]
	if !found && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	if kind == "" || name == "" || found && strings.Contains(name, "/") {
		return "", "", nil, fmt.Errorf("invalid argument %q: %w", strings.Join(args, " "), errName)
	}
	return kind, name, rest, nil
}

// objectArgs validates that the arguments name an object, followed by at most
// that many more.
func objectArgs(more int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errName
		}
		_, _, rest, err := parseObject(args)
		if err == nil && len(rest) > more {
			err = fmt.Errorf("unexpected argument %q", rest[more])
		}
		return err
	}
}

// optional validates the arguments only if there are any.
func optional(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		return args(cmd, given)
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

// parseRule parses the RULE after the object in the arguments; nil if there is
// none.
func parseRule(args []string) (*merge.Name, error) {
	if len(args) == 0 { // with --request
		return nil, nil
	}
	_, _, rest, err := parseObject(args)
	if err != nil || len(rest) == 0 {
		return nil, err
	}
	name, err := merge.ParseName(rest[0])
	if err != nil {
		return nil, fmt.Errorf("invalid RULE: %w", err)
	}
	return &name, nil
}
