import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { goesDirect } from './no-proxy.ts';

interface Table {
  readonly from: string;
  readonly urls: readonly string[];
  readonly rows: readonly { readonly noProxy: string; readonly direct: readonly string[] }[];
}

/** What a program written in Go answered for each pair of a NO_PROXY and a URL. */
const table = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'testdata/no-proxy.json'), 'utf8'),
) as Table;

test.each(table.rows)('$noProxy is read as Go reads it', ({ noProxy, direct }) => {
  const read = table.urls.filter((url) => {
    const { protocol, hostname, port } = new URL(url);
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    return goesDirect(noProxy, { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) });
  });
  expect(read).toEqual(direct);
});
