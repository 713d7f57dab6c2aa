package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:          "release",
		Short:        "Make of binaries what people install",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(imageCommand(), pushCommand(), pluginCommand())
	return root
}

func imageCommand() *cobra.Command {
	var version, out string
	cmd := &cobra.Command{
		Use:   "image OS/ARCH=BINARY...",
		Short: "Write an image of the server for these platforms, as an OCI layout",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binaries, err := readBinaries(args)
			if err != nil {
				return err
			}
			index, err := buildIndex(binaries, version, os.Getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return err
			}
			digest, err := writeLayout(out, index, version)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", out, digest)
			return err
		},
	}
	cmd.Flags().StringVar(&version, "version", "dev", "version of the image, and its name in the layout")
	cmd.Flags().StringVar(&out, "out", "image", "folder of the layout, which is made anew")
	return cmd
}

func pushCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "push LAYOUT REFERENCE",
		Short: "Push the image of a layout, with the credentials that docker login stored",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			pushed, err := push(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pushed)
			return err
		},
	}
}

func pluginCommand() *cobra.Command {
	var p plugin
	cmd := &cobra.Command{
		Use:   "plugin OS/ARCH=BINARY...",
		Short: "Write archives of the kubectl plugin, their sums, and a manifest for krew",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			binaries, err := readBinaries(args)
			if err != nil {
				return err
			}
			return p.write(cmd.OutOrStdout(), binaries)
		},
	}
	cmd.Flags().StringVar(&p.version, "version", "dev", "version of the plugin")
	cmd.Flags().StringVar(&p.out, "out", "dist", "folder to write to")
	cmd.Flags().StringVar(&p.url, "url", "", "address of the folder that the archives will be downloaded from (default: no manifest)")
	cmd.Flags().StringArrayVar(&p.with, "with", nil, "file to put into each archive beside the binary, such as a licence; repeatable")
	return cmd
}
