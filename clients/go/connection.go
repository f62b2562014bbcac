package emend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

// DefaultDeadline is how long a call may take, with all its attempts, where neither its context nor the connection says.
const DefaultDeadline = 10 * time.Second

// A Connection says where a service is and how to reach it.
type Connection struct {
	// Address is host:port, with http:// or https:// before it if wanted. Several, separated by commas, are those of
	// replicas: connections go to the first that answers, and stay with it while it does. Required.
	Address string
	// TLS secures the connection. Without it an address with https:// is verified against the system's authorities.
	TLS *TLS
	// TokenFile has the bearer token sent with every call. It is read for each, so a token may be exchanged at any time.
	TokenFile string
	// Deadline is how long a call may take, with all its attempts, if its context has none. Default: 10 s.
	Deadline time.Duration
	// KeepAlive is how often a silent connection is tested, at least 10 s. Default: 10 s. One that does not answer within
	// half of it is closed.
	KeepAlive time.Duration
	// DialOptions are added to Emend's own, for interceptors and statistics.
	DialOptions []grpc.DialOption
}

// TLS names files, which are read again for every connection.
type TLS struct {
	// CAFile has the authorities to trust, in PEM. Default: the system's.
	CAFile string
	// CertFile and KeyFile are the client's certificate and its key, in PEM. Both or neither.
	CertFile, KeyFile string
	// ServerName is the name in the server's certificate. Default: the host of the address.
	ServerName string
}

func (c Connection) deadline() time.Duration {
	if c.Deadline > 0 {
		return c.Deadline
	}
	return DefaultDeadline
}

// addresses are the parts of Address without their schemes.
func (c Connection) addresses() (addresses []string, secured bool, err error) {
	secured = c.TLS != nil
	for _, part := range strings.Split(c.Address, ",") {
		part = strings.TrimSpace(part)
		if rest, is := strings.CutPrefix(part, "https://"); is {
			part, secured = rest, true
		} else if rest, is := strings.CutPrefix(part, "http://"); is {
			if c.TLS != nil {
				return nil, false, invalid("address", "must begin with https:// where TLS is set, is "+part)
			}
			part = rest
		}
		part = strings.TrimSuffix(part, "/")
		if host, port, err := net.SplitHostPort(part); err != nil || host == "" || port == "" {
			return nil, false, invalid("address", fmt.Sprintf("must be host:port, is %q", part))
		}
		addresses = append(addresses, part)
	}
	return addresses, secured, nil
}

// startingAt is the same connection that tries another address first.
func (c Connection) startingAt(turn int) Connection {
	addresses := strings.Split(c.Address, ",")
	first := turn % len(addresses)
	c.Address = strings.Join(append(addresses[first:len(addresses):len(addresses)], addresses[:first]...), ",")
	return c
}

// dial makes a connection that connects when it is first used.
func (c Connection) dial() (*grpc.ClientConn, error) {
	addresses, secured, err := c.addresses()
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if secured {
		files := TLS{}
		if c.TLS != nil {
			files = *c.TLS
		}
		if (files.CertFile == "") != (files.KeyFile == "") {
			return nil, invalid("tls", "CertFile and KeyFile belong together: one is empty")
		}
		// A file that is missing or broken is said now, not by every connection.
		if _, err := files.config(); err != nil {
			return nil, invalid("tls", err.Error())
		}
		transport = &readAgain{files: files}
	}
	every := max(c.KeepAlive, 10*time.Second)
	state := resolver.State{}
	for _, address := range addresses {
		host, _, _ := net.SplitHostPort(address)
		one := resolver.Address{Addr: address, ServerName: host}
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{one}})
	}
	named := manual.NewBuilderWithScheme("emend")
	named.InitialState(state)
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithResolvers(named),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"pick_first": {}}]}`),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: every, Timeout: every / 2, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16 << 20)),
	}
	if c.TokenFile != "" {
		options = append(options, grpc.WithPerRPCCredentials(tokenFile(c.TokenFile)))
	}
	return grpc.NewClient("emend:///"+addresses[0], append(options, c.DialOptions...)...)
}

// tokenFile sends the token that is in a file at the time of the call.
type tokenFile string

func (f tokenFile) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fmt.Errorf("the token cannot be read: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(token))}, nil
}

// RequireTransportSecurity is false: on loopback and behind a mesh tokens travel without TLS of our own.
func (tokenFile) RequireTransportSecurity() bool { return false }

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// readAgain reads the files of TLS for each handshake.
type readAgain struct{ files TLS }

func (r *readAgain) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	config, err := r.files.config()
	if err != nil {
		return nil, nil, err
	}
	if host, _, err := net.SplitHostPort(authority); err == nil {
		authority = host
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
}

func (r *readAgain) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, fmt.Errorf("these credentials are a client's")
}

func (r *readAgain) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

func (r *readAgain) Clone() credentials.TransportCredentials { return &readAgain{files: r.files} }

// OverrideServerName is what gRPC's interface asks for; ServerName of [TLS] does the same.
func (r *readAgain) OverrideServerName(name string) error {
	r.files.ServerName = name
	return nil
}
