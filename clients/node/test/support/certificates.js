// Certificates of a throw-away CA, made with openssl.
'use strict'

const { execFileSync } = require('node:child_process')
const { writeFileSync } = require('node:fs')
const { join } = require('node:path')

/**
 * A CA with a server's and a client's certificate, as files of a directory.
 * @param {string} directory
 */
function certificates(directory) {
  const at = name => join(directory, name)
  const openssl = (...words) => execFileSync('openssl', words, { stdio: 'ignore' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign']
  openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=CA', ...usage, '-keyout', at('ca.key'), '-out', at('ca.pem'))
  for (const [name, alternatives] of [['server', 'DNS:localhost,IP:127.0.0.1'], ['client', 'DNS:client.example']]) {
    const [signed, request, extra] = [at(`${name}.pem`), at(`${name}.csr`), at(`${name}.ext`)]
    openssl('req', ...key, '-subj', `/CN=${name}`, '-keyout', at(`${name}.key`), '-out', request)
    writeFileSync(extra, `subjectAltName=${alternatives}\nextendedKeyUsage=serverAuth,clientAuth\n`)
    const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial']
    openssl('x509', '-req', '-in', request, ...by, '-days', '2', '-extfile', extra, '-out', signed)
  }
  return {
    ca: at('ca.pem'),
    server: ['--tls-cert', at('server.pem'), '--tls-key', at('server.key'), '--tls-client-ca', at('ca.pem')],
    client: { ca: at('ca.pem'), certificate: at('client.pem'), key: at('client.key') },
  }
}

module.exports = { certificates }
