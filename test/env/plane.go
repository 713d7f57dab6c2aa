package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// plane is a control plane in a folder. All that is known about it is in files and in
// /proc, so that another process than the one that booted it can use, restart and
// stop it.
type plane struct {
	dir    string
	assets assets
}

// Programs of a control plane.
const (
	etcdProgram        = "etcd"
	apiServerProgram   = "kube-apiserver"
	controllersProgram = "kube-controller-manager"
)

func (p plane) file(name string) string { return filepath.Join(p.dir, name) }

// boot starts the programs and installs the CRDs.
func (p plane) boot(ctx context.Context, o options) error {
	if err := recordBoot(o); err != nil {
		return err
	}
	say(o, "starting etcd and kube-apiserver")
	etcd, err := p.bootEtcd(ctx)
	if err != nil {
		return err
	}
	if err := p.bootAPIServer(ctx, etcd, o.flags); err != nil {
		return err
	}
	if paths, err := crdPaths(ctx, o); err != nil {
		return err
	} else if len(paths) > 0 {
		say(o, "installing the CRDs of Gateway API and of the policies")
		if err := p.installCRDs(paths...); err != nil {
			return err
		}
	}
	if !o.controllers {
		return nil
	}
	say(o, "starting kube-controller-manager")
	return p.bootControllers(o.accounts)
}

func say(o options, act string) { _, _ = fmt.Fprintln(o.progress, act) }

func (p plane) bootEtcd(ctx context.Context) (url string, err error) {
	port, err := FreePort(ctx)
	if err != nil {
		return "", err
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	err = p.start(etcdProgram, "--data-dir="+p.file("etcd"), "--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync=true", "--log-level=warn")
	if err != nil {
		return "", err
	}
	return url, p.awaitEtcd(ctx, url)
}

// awaitEtcd waits until etcd is ready.
func (p plane) awaitEtcd(ctx context.Context, url string) error {
	return p.await(ctx, etcdProgram, &rest.Config{Host: url}, "/health")
}

func (p plane) bootAPIServer(ctx context.Context, etcd string, flags []flag) error {
	port, err := FreePort(ctx)
	if err != nil {
		return err
	}
	if err := p.createCA(); err != nil {
		return err
	}
	// It generates its own serving certificate.
	args := []string{
		"--etcd-servers=" + etcd, "--cert-dir=" + p.dir, "--client-ca-file=" + p.file(caFile),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true", "--authorization-mode=RBAC",
		"--disable-admission-plugins=ServiceAccount", // no controller creates the accounts of namespaces
		fmt.Sprintf("--service-account-issuer=https://127.0.0.1:%d/", port),
		"--service-account-key-file=" + p.file(keyFile), "--service-account-signing-key-file=" + p.file(keyFile),
	}
	for _, f := range flags {
		args = append(args, "--"+f.name+"="+strings.Join(f.values, ","))
	}
	if err := p.start(apiServerProgram, args...); err != nil {
		return err
	}
	return p.awaitAPIServer(ctx)
}

// bootControllers runs the namespace controller and the garbage collector.
func (p plane) bootControllers(accounts bool) error {
	_, kubeconfig, err := p.sign("system:kube-controller-manager", []string{masters})
	if err != nil {
		return err
	}
	path := p.file("kube-controller-manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of the controllers: %w", err)
	}
	return p.start(controllersProgram, "--kubeconfig="+path, "--controllers=namespace-controller,garbage-collector-controller",
		fmt.Sprintf("--use-service-account-credentials=%t", accounts), "--leader-elect=false", "--secure-port=0")
}

// stop kills the programs: nothing that they store is needed any more.
func (p plane) stop() error {
	var errs []error
	for _, name := range []string{controllersProgram, apiServerProgram, etcdProgram} {
		errs = append(errs, p.end(name, syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// start starts a program of the control plane in the background, with its log in a
// file: it outlives this process.
func (p plane) start(name string, args ...string) error {
	log, err := os.OpenFile(p.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.assets.path(name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	p.awaitFound(name, ended)
	if err := os.WriteFile(p.arguments(name), []byte(strings.Join(args, "\n")), 0o600); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

// awaitFound waits until find finds a program that was started, unless it has ended. On
// a busy machine, its command line is empty for a while after exec.
func (p plane) awaitFound(name string, ended <-chan struct{}) {
	for p.find(name) == 0 {
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// restart starts a program again with the same arguments.
func (p plane) restart(name string) error {
	args, err := os.ReadFile(p.arguments(name))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return p.start(name, strings.Split(string(args), "\n")...)
}

func (p plane) log(name string) string       { return p.file(name + ".log") }
func (p plane) arguments(name string) string { return p.file(name + ".arguments") }

// argument returns an argument that a program was started with.
func (p plane) argument(name, flag string) string {
	args, _ := os.ReadFile(p.arguments(name))
	_, rest, _ := strings.Cut(string(args), "--"+flag+"=")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// find returns the process id of a program of this control plane, 0 if it does not
// run. Each has an argument with the folder.
func (p plane) find(name string) int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		data, err := os.ReadFile(line)
		if err != nil || !bytes.HasPrefix(data, []byte(p.assets.path(name)+"\x00")) || !bytes.Contains(data, []byte("="+p.dir+"/")) && !bytes.Contains(data, []byte("="+p.dir+"\x00")) {
			continue // another program, or one that has exited
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line))); err == nil {
			return pid
		}
	}
	return 0
}

// end ends a program with a signal, and kills it if that takes longer than grace. It
// waits until all its threads have ended: only then are its ports free again.
func (p plane) end(name string, s syscall.Signal) error {
	const grace = 2 * time.Second // an API server would wait a minute for watches
	pid := p.find(name)
	if pid == 0 {
		return nil
	}
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stop %s (pid %d): %w", name, pid, err)
	}
	defer func() { _ = unix.Close(process) }()
	for _, try := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{s, grace}, {syscall.SIGKILL, Patience}} {
		if err := unix.PidfdSendSignal(process, try.signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("stop %s (pid %d): %w", name, pid, err)
		}
		if ended, err := awaitEnd(process, try.wait); ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s (pid %d) cannot be killed", name, pid)
}

// awaitEnd reports whether a process ends within that time.
func awaitEnd(process int, wait time.Duration) (bool, error) {
	for until := time.Now().Add(wait); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(max(0, time.Until(until)).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
		}
	}
}

// awaitAPIServer waits until the API server is ready.
func (p plane) awaitAPIServer(ctx context.Context) error {
	// The API server writes its certificate before it listens. The file is there, and
	// empty, a moment before its content is.
	for p.find(apiServerProgram) != 0 {
		if _, err := cert.CertsFromFile(p.file(servingFile)); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	config, _, err := p.sign("admin", []string{masters})
	if err != nil {
		return errors.Join(err, p.failed(apiServerProgram))
	}
	return p.await(ctx, apiServerProgram, config, "/readyz")
}

// await waits until a program responds with status 200.
func (p plane) await(ctx context.Context, name string, config *rest.Config, path string) error {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", name, err)
	}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", name, err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if p.find(name) == 0 || ctx.Err() != nil {
			return p.failed(name)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// failed returns the error of a program that is not ready, with the end of its log.
func (p plane) failed(name string) error {
	log, _ := os.ReadFile(p.log(name))
	return fmt.Errorf("%w: %s of %s:\n%s", ErrNoProcess, name, p.assets, log[max(0, len(log)-4096):])
}
