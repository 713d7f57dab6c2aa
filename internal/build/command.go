package build

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/cliflag"
)

// Command returns the command "version" of the program with that name.
func Command(name string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this command and of its libraries", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return Read().write(cmd.OutOrStdout(), name, format) },
	}
	cliflag.EnumVarP(cmd.Flags(), &format, "output", "o", "text", []string{"text", "json"}, "output format: text or json")
	return cmd
}

// write writes the Info of the program with that name, as text or json.
func (i Info) write(out io.Writer, name, format string) error {
	if format == "text" {
		return i.writeText(out, name)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(i); err != nil {
		return fmt.Errorf("write version: %w", err)
	}
	return nil
}
