import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  ENDPOINTS,
  GEO_NAME,
  GEO_ZONE,
  masterFile,
  PLAIN_ZONE,
  plainLines,
  SIGNED_GEO_NAME,
  SIGNED_GEO_ZONE,
} from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { ANSWERS, CHAIN_HOST, ONE_HOST, plainZoneLines, SEVERAL_HOST } from './shapes.mjs'

const ALIAS = `klb.${CHAIN_HOST}`

/** True if the build of a checkout can sign zones. */
const canSign = (root) => existsSync(join(root, 'dist/signing'))

/** `root`: of the checkout whose `dist` is measured. */
export const sextant = (name, root) => ({
  name,
  command: process.execPath,
  lacks: canSign(root) ? [] : ['signed-geo', 'signed-geo-do'],
  prepare({ directory, port, mmdb, signedZones }) {
    mkdirSync(join(directory, 'records'), { recursive: true })
    mkdirSync(join(directory, 'signed-records'), { recursive: true })
    write(join(directory, 'records/app.yaml'), manifest('app', GEO_NAME, geoEndpoints(GEO_NAME)))
    const signedEndpoints = geoEndpoints(SIGNED_GEO_NAME)
    write(
      join(directory, 'signed-records/app.yaml'),
      manifest('app', SIGNED_GEO_NAME, signedEndpoints),
    )
    write(join(directory, 'records/shop.yaml'), manifest('shop', CHAIN_HOST, chainEndpoints()))
    write(join(directory, 'records/one.yaml'), manifest('one', ONE_HOST, weighted(ONE_HOST)))
    write(
      join(directory, 'records/several.yaml'),
      manifest('several', SEVERAL_HOST, weighted(SEVERAL_HOST), ANSWERS),
    )
    write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainZoneLines(plainLines)))
    write(
      join(directory, 'Corefile'),
      `${GEO_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    geoip ${mmdb} {
        edns-subnet
    }
    kuadrant ${GEO_ZONE} {
        manifests ${directory}/records
    }
}
${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    minimal
    file ${directory}/zone ${PLAIN_ZONE}
}
${canSign(root) ? signingBlock(directory, port, mmdb) : ''}
${signedZones.map((signed) => signedBlock(port, signed)).join('')}`,
    )
    return [join(root, 'dist/main.js'), 'serve', '-conf', join(directory, 'Corefile')]
  },
})

const signingBlock = (directory, port, mmdb) => `${SIGNED_GEO_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    geoip ${mmdb} {
        edns-subnet
    }
    kuadrant ${SIGNED_GEO_ZONE} {
        manifests ${directory}/signed-records
    }
    dnssec {
        keys ${directory}/keys
    }
}
`

const signedBlock = (port, { zone, file }) => `${zone}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    minimal
    file ${file} ${zone}
}
`

const manifest = (name, rootHost, endpoints, answers) => `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: ${name}
  namespace: bench
  annotations: {${answers === undefined ? '' : ` sextant.io/answers: "${answers}" `}}
spec:
  rootHost: ${rootHost}
  endpoints:
${endpoints.map(endpoint).join('')}`

const endpoint = ({ dnsName, type, target, ...properties }) => `    - dnsName: ${dnsName}
      recordType: ${type}
      recordTTL: 60
      setIdentifier: "${Object.values(properties).join('-')}${target}"
      targets: [${target}]
      providerSpecific: [${Object.entries(properties).map(property).join(', ')}]
`
const property = ([name, value]) => `{ name: ${name}, value: "${value}" }`

function geoEndpoints(dnsName) {
  return Object.entries(ENDPOINTS).flatMap(([code, endpoints]) =>
    endpoints.map(({ address, weight }) => {
      return { dnsName, type: 'A', target: address, 'geo-code': `GEO-${code}`, weight }
    }),
  )
}

function weighted(dnsName) {
  return [100, 80, 60, 40, 30, 20, 10, 5].map((weight, i) => {
    return { dnsName, type: 'A', target: `192.0.2.${i + 1}`, weight }
  })
}

/** As DNSPolicy writes them: host ─▶ klb ─▶ one per place ─▶ one per gateway ─▶ A. */
function chainEndpoints() {
  const places = Object.entries(ENDPOINTS).flatMap(([code, endpoints]) => {
    const place = `${code.toLowerCase()}.${ALIAS}`
    const byPlace = { dnsName: ALIAS, type: 'CNAME', target: place, 'geo-code': `GEO-${code}` }
    const gateways = endpoints.flatMap(({ address, weight }, i) => {
      const gateway = `g${i}-${code.toLowerCase()}.${ALIAS}`
      return [
        { dnsName: place, type: 'CNAME', target: gateway, weight },
        { dnsName: gateway, type: 'A', target: address },
      ]
    })
    return [{ ...byPlace, ...(code === 'EU' ? { default: true } : {}) }, ...gateways]
  })
  return [{ dnsName: CHAIN_HOST, type: 'CNAME', target: ALIAS }, ...places]
}
