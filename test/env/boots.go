package env

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bootsVariable names a file to which each boot of a control plane appends a line
// with the program, its folder, the test and the options.
const bootsVariable = "OVERRULE_BOOTS"

// recordBoot appends that line, in one write: other processes append to the file, too.
func recordBoot(o options) error {
	file := os.Getenv(bootsVariable)
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record the boot of a control plane: %w", err)
	}
	folder, _ := os.Getwd()
	_, err = fmt.Fprintf(f, "%s %s %s %s\n", filepath.Base(os.Args[0]), folder, o.test, strings.Join(o.names(), ","))
	if err := f.Close(); err != nil {
		return fmt.Errorf("record the boot of a control plane: %w", err)
	}
	return err
}

func (o options) names() []string {
	var out []string
	for name, set := range map[string]bool{"controllers": o.controllers, "accounts": o.accounts, "bare": o.bare, "crds": len(o.crds) > 0} {
		if set {
			out = append(out, name)
		}
	}
	for _, f := range o.flags {
		out = append(out, f.name)
	}
	return out
}
