import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ENDPOINTS, GEO_NAME, GEO_ZONE, masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

const main = join(dirname(fileURLToPath(import.meta.url)), '../../../dist/main.js')

export const sextant = {
  name: 'Sextant',
  command: process.execPath,
  prepare({ directory, port, mmdb, names, geo }) {
    mkdirSync(join(directory, 'records'), { recursive: true })
    if (geo) write(join(directory, 'records/app.yaml'), manifest())
    else write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
    write(
      join(directory, 'Corefile'),
      geo
        ? `${GEO_ZONE}:${port} {
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
`
        : `${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    minimal
    file ${directory}/zone ${PLAIN_ZONE}
}
`,
    )
    return [main, 'serve', '-conf', join(directory, 'Corefile')]
  },
}

/** Every reply is a message of its own, as before replies to one peer went together. */
export const sextantUngrouped = {
  ...sextant,
  name: 'ungrouped',
  env: { SEXTANT_GSO: 'off' },
}

function* manifest() {
  yield `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app, namespace: bench }
spec:
  rootHost: ${GEO_NAME}
  endpoints:
`
  for (const [code, endpoints] of Object.entries(ENDPOINTS)) {
    for (const { address, weight } of endpoints) {
      yield `    - dnsName: ${GEO_NAME}
      recordType: A
      recordTTL: 60
      setIdentifier: ${code}-${address}
      targets: [${address}]
      providerSpecific:
        - { name: geo-code, value: GEO-${code} }
        - { name: weight, value: "${weight}" }
`
    }
  }
}
