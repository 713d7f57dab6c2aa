package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/webhook"
)

// The values of --coordination.
const (
	// coordinationLeader: the holder of the Lease evaluates the writes of all replicas.
	coordinationLeader = "leader"
	// coordinationNone: each replica evaluates alone, and does all background work.
	coordinationNone = "none"
)

// leaseName is the Lease of the leader.
const leaseName = "overrule"

// coordinated reports whether replicas evaluate as one.
func (o *options) coordinated() bool { return o.coordination == coordinationLeader }

// bounds are those of the coordination.
func (o *options) bounds() coordination.Bounds {
	return coordination.NewBounds(o.webhookTimeout, o.leaseDuration)
}

// createCoordination creates the part of this replica in the coordination. With
// --coordination=none it stays nil.
func (a *app) createCoordination() error {
	if !a.options.coordinated() {
		a.log.Info("WARNING: --coordination=none: replicas do not know of each other's writes in flight; run one replica only")
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", a.options.peerBindAddress)
	if err != nil {
		return fmt.Errorf("listen for other replicas: %w", err)
	}
	address, err := peerAddress(a.options.peerAddress, os.Getenv("POD_IP"), listener.Addr())
	if err != nil {
		return err
	}
	client, err := coordinationv1client.NewForConfig(unlimited(a.config)) // a rate limit would delay renewals
	if err != nil {
		return fmt.Errorf("create client of Leases: %w", err)
	}
	log := a.log.WithName("coordination")
	authority := a.certificates.authority
	a.coordinator = coordination.New(coordination.Options{
		Leases: client.Leases(a.options.namespace), Name: leaseName, Address: address,
		Identity: hostname() + "_" + string(uuid.NewUUID()),
		Bounds:   a.options.bounds(),
		State:    replicaState{a}, Peers: coordination.NewClient(peerTransport(authority.ClientTLS())), Work: a.leaderWork.Run,
		Metrics: coordination.NewMetrics(crmetrics.Registry), Log: log,
	})
	crmetrics.Registry.MustRegister(a.coordinator.Gauge())
	a.peerServer = &peerServer{listener: listener, tls: authority.ServerTLS(), coordinator: a.coordinator, log: log}
	return nil
}

var errNoPeerAddress = errors.New("cannot determine the address of this replica for others: set --peer-address or $POD_IP, or, with one replica only, --coordination=none")

// peerAddress returns where other replicas reach this one, as HOST:PORT: the flag, or the
// port of the listener at the pod's IP address or, without one, at its own.
func peerAddress(flag, podIP string, listener net.Addr) (string, error) {
	if flag != "" {
		return flag, nil
	}
	host, port, err := net.SplitHostPort(listener.String())
	if err != nil {
		return "", fmt.Errorf("address of the listener for other replicas: %w", err)
	}
	if podIP != "" {
		host = podIP
	} else if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return "", errNoPeerAddress
	}
	return net.JoinHostPort(host, port), nil
}

// Timeouts of connections to other replicas: a dead one is noticed before the webhook's
// timeout.
const (
	peerDialTimeout = time.Second
	peerPingAfter   = time.Second
	peerPingTimeout = time.Second
	peerIdleTimeout = 90 * time.Second
	// peerStreams is the number of concurrent requests on one connection.
	peerStreams = 2048
)

// peerTransport returns an HTTP/2 transport to other replicas.
func peerTransport(c *tls.Config) *http.Transport {
	t := &http.Transport{
		TLSClientConfig: c, DialContext: (&net.Dialer{Timeout: peerDialTimeout}).DialContext, TLSHandshakeTimeout: peerDialTimeout,
		IdleConnTimeout: peerIdleTimeout, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{SendPingTimeout: peerPingAfter, PingTimeout: peerPingTimeout},
	}
	t.Protocols.SetHTTP2(true)
	return t
}

// peerServer serves the requests of other replicas.
type peerServer struct {
	listener    net.Listener
	tls         *tls.Config
	coordinator *coordination.Coordinator
	webhooks    *webhook.Server
	log         logr.Logger
}

// maxHandover is the size of the largest log that a leader hands over: the reviews of all
// writes in flight, in base64.
const maxHandover = 4 * inflight.DefaultMaxBytes

// Start implements manager.Runnable.
func (p *peerServer) Start(ctx context.Context) error {
	server := &http.Server{
		Handler:   p.coordinator.Handler(p.webhooks.PeerHandler(), maxHandover),
		TLSConfig: p.tls, Protocols: new(http.Protocols), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: peerStreams},
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes, ErrorLog: errorLog(p.log),
	}
	server.Protocols.SetHTTP2(true)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	p.log.Info("serving other replicas", "address", p.listener.Addr().String())
	if err := server.ServeTLS(p.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve other replicas: %w", err)
	}
	return nil
}

// serveReplicas adds what replicas do for each other to the HTTPS server, which hands over
// when it shuts down.
func (a *app) serveReplicas() {
	if a.coordinator == nil {
		return
	}
	a.peerServer.webhooks = a.webhooks
	a.https.handOver = a.coordinator.HandOver
	a.https.runnables = append(a.https.runnables, a.peerServer, a.coordinator)
	a.probes.checks["coordination"] = func(*http.Request) error { return a.coordinator.Healthy() }
	a.probes.details = map[string]func() string{"coordination": a.coordinator.Status}
}

// replicaState is the coordination.State of this process, whose components are created
// after the Coordinator.
type replicaState struct{ app *app }

// Ready implements coordination.State.
func (s replicaState) Ready() bool {
	_, ready := s.app.store.View()
	return ready && s.app.watcher.StaleError() == nil
}

// CatchUp implements coordination.State.
func (s replicaState) CatchUp(ctx context.Context) error {
	observed, err := s.app.watcher.CatchUp(ctx, s.app.inFlight.Refs())
	if err == nil {
		s.app.inFlight.Observe(observed)
	}
	return err
}

// Export implements coordination.State.
func (s replicaState) Export() (json.RawMessage, error) { return s.app.webhooks.Export() }

// Import implements coordination.State.
func (s replicaState) Import(writes json.RawMessage) error { return s.app.webhooks.Import(writes) }

// Reset implements coordination.State.
func (s replicaState) Reset() { s.app.inFlight.Reset() }

// AwaitEmpty implements coordination.State.
func (s replicaState) AwaitEmpty(ctx context.Context) error { return s.app.inFlight.AwaitEmpty(ctx) }

// addLeaderWork adds background work that only the leader does, and that each replica
// does with --coordination=none.
func (a *app) addLeaderWork(r manager.Runnable) error {
	if !a.options.coordinated() {
		return a.manager.Add(r)
	}
	a.leaderWork.Add(r)
	return nil
}

// leading reports whether this replica does the work of the leader.
func (a *app) leading() bool { return a.coordinator == nil || a.coordinator.Leading() }
