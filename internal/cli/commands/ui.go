package commands

import (
	"context"
	"errors"
	"io"

	"github.com/pkg/browser"
	"github.com/spf13/cobra"

	"overrule.dev/overrule/internal/cli/ui"
)

// uiFlags are the flags of the ui command.
type uiFlags struct {
	paths     []string
	port      int
	noBrowser bool
}

func uiCommand(a *app) *cobra.Command {
	var flags uiFlags
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show effective policies on a page in the browser",
		Long: `Show effective policies on a page in the browser: search for a route, a policy or a
hostname, see which rules are in effect there and why others are not, find where a
request goes, and try a change.

The page shows the cluster of the current kubeconfig with your own rights, and follows
it. With -f it shows manifests, and follows them as they are saved. Nothing is written:
a change that you try is only evaluated, as check and diff do.

The command listens on 127.0.0.1 only, until Ctrl-C. The link that it prints works once,
in one browser; other tabs of that browser can then open any address of the page.`,
		Example: `  # Show the cluster
  kubectl overrule ui

  # Show a directory of manifests, and follow it as files are saved
  kubectl overrule ui -f manifests/

  # Print the link only, on a fixed port
  kubectl overrule ui --no-browser --port 8700`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serveUI(cmd.Context(), a, flags) },
	}
	pathsFlag(cmd, &flags.paths, "show these manifests instead of the cluster, and follow them")
	cmd.Flags().IntVar(&flags.port, "port", 0, "the port to listen on, on 127.0.0.1; 0 for a free one")
	cmd.Flags().BoolVar(&flags.noBrowser, "no-browser", false, "do not open a browser")
	return cmd
}

func serveUI(ctx context.Context, a *app, flags uiFlags) (err error) {
	if flags.port < 0 || flags.port > 65535 {
		return errors.New("invalid --port: must be in 0-65535")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var from ui.Source
	if len(flags.paths) > 0 {
		from, err = a.newFileFeed(flags.paths)
	} else {
		from, err = a.newClusterFeed(ctx)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	options := ui.Options{Port: flags.port, Out: a.ErrOut}
	if !flags.noBrowser {
		options.Open = openBrowser
	}
	server, err := ui.New(ctx, from, options)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// openBrowser opens a link. Output of the browser would only be noise here.
func openBrowser(link string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return browser.OpenURL(link)
}

// quietApp returns a copy of the app that reads other input, and keeps its warnings.
func (a *app) quietApp(in io.Reader) (*app, *warnings) {
	var w warnings
	out := *a
	out.In, out.ErrOut, out.verbose, out.said = in, &w, false, nil
	return &out, &w
}
