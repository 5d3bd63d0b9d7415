/** Texts that attack a web page, or the eyes of its reader, if they are not shown as they are. */
export const HOSTILE_TEXTS: readonly string[] = [
  '<script>globalThis.attacked = 1</script>',
  '"><img src=x onerror="globalThis.attacked = 1">',
  "'><svg/onload=globalThis.attacked=1>",
  '</title></textarea></style></script><script>globalThis.attacked = 1</script>',
  'javascript:globalThis.attacked=1',
  '<iframe srcdoc="<script>parent.attacked=1</script>">',
  '{{constructor.constructor("globalThis.attacked=1")()}}',
  '&lt;b&gt; &amp;#60;',
  '\u202egnp.exe\u2066 \u200b\ufeff',
  '\u0000\u0007\u001b[31mred\u001b[0m\r\nline\u2028two',
  '__proto__',
]

/** Set by each text that succeeds. */
export const ATTACKED = 'globalThis.attacked ?? 0'

/** A DNSRecord whose set identifiers and TXT are these texts, as far as DNSRecords may have them. */
export const HOSTILE_RECORD: string = JSON.stringify({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'hostile', namespace: 'default' },
  spec: {
    rootHost: 'hostile.k.example.com',
    endpoints: [
      ...HOSTILE_TEXTS.map((setIdentifier, i) => ({
        ...{ dnsName: 'hostile.k.example.com', recordType: 'A', recordTTL: 60, setIdentifier },
        ...{ targets: [`192.0.2.${i + 1}`], providerSpecific: [{ name: 'weight', value: '1' }] },
      })),
      ...HOSTILE_TEXTS.map((text, i) => ({
        ...{ dnsName: `t${i}.hostile.k.example.com`, recordType: 'TXT', recordTTL: 60 },
        targets: [JSON.stringify(text)],
      })),
    ],
  },
})
