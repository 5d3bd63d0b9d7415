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
  'tags\u{e0061}\u{e007f}\u2061\u00ad',
  '__proto__',
]
