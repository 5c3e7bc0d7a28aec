package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the range that systems use for outgoing
// connections, so that a server that was killed finds its port free when it
// is started again.
const firstPort, lastPort = 20000, 29999

var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePorts gives loopback ports that nobody listens on and that this process
// has not given out before. Another process may still be faster; then the
// server fails to bind and startFirst asks again.
func freePorts(n int) ([]int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	var ports []int
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if handedOut.ports[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue // in use
		}
		if err := listener.Close(); err != nil {
			return nil, fmt.Errorf("give a tried port back: %w", err)
		}
		handedOut.ports[port] = true
		ports = append(ports, port)
	}
	return nil, errors.New("no free loopback port found in 1000 tries")
}
