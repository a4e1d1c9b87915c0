import { isObject, type JsonObject } from '../json.ts';
import type { Selection } from '../read/list-objects.ts';
import { bookmark, type WatchEvent, watchObjects } from '../read/watch-objects.ts';
import { apiVersionOf, type Resource } from '../resources/resource.ts';
import type { Store } from '../store/store.ts';
import type { StoredObject } from '../stored-object.ts';
import { parseIncludeObject, renderTable, wantsTable } from '../table/table.ts';
import type { Exchange } from './exchange.ts';

/** Milliseconds between bookmarks of a quiet watch: a client that is cut off then has little to read again. */
const BOOKMARK_INTERVAL = 10_000;
/** Seconds a watch lasts where the client says nothing (the API server takes 30 to 60 minutes). */
const DEFAULT_TIMEOUT = 1800;
/** Bytes a slow reader may leave unread before its watch is cut; it then lists again. */
const MAX_UNREAD = 16 * 1024 * 1024;

/** Answers a watch: one JSON object a line, until the client goes, the time is over, or the server ends. */
export function serveWatch(
  { response, request, query }: Exchange,
  store: Store,
  resource: Resource,
  selection: Selection,
  now: () => Date,
): void {
  const encode = encoder(resource, query, request.headers.accept ?? '', now);
  const bookmarks = query.get('allowWatchBookmarks') === 'true';
  const started: WatchEvent[] = [];
  let begun = false;

  const write = (event: WatchEvent): void => {
    response.write(encode(event));
    if (response.writableLength > MAX_UNREAD) response.destroy();
  };
  // Events of the past come before it is known that there is no error, and so before the answer may begin.
  const unwatch = watchObjects(
    store,
    {
      resource,
      selection,
      resourceVersion: query.get('resourceVersion') ?? '',
      sendInitialEvents: query.get('sendInitialEvents') === 'true',
    },
    (event) => (begun ? write(event) : started.push(event)),
  );
  response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-cache, private' });
  response.flushHeaders();
  begun = true;
  for (const event of started) write(event);

  const mark = () => write(bookmark(store, resource));
  const marking = bookmarks ? setInterval(mark, BOOKMARK_INTERVAL) : undefined;
  const stop = () => {
    unwatch();
    clearInterval(marking);
    clearTimeout(ending);
  };
  const ending = setTimeout(() => {
    if (bookmarks) mark();
    // Nothing more may be written, and the connection closes only later.
    stop();
    response.end();
  }, timeoutOf(query) * 1000);
  response.once('close', stop);
}

function timeoutOf(query: URLSearchParams): number {
  const seconds = Number(query.get('timeoutSeconds') ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : DEFAULT_TIMEOUT;
}

/**
 * @returns what makes the line of an event: the object itself, or a table of one row. Only the first table has columns.
 */
function encoder(resource: Resource, query: URLSearchParams, accept: string, now: () => Date) {
  const asTable = wantsTable(accept);
  const includeObject = parseIncludeObject(query.get('includeObject'));
  let first = true;
  return (event: WatchEvent): string | Buffer => {
    if (event.type === 'BOOKMARK') {
      const object = asTable ? emptyTable(event.object) : event.object;
      return lineOf(event.type, object);
    }
    if (!asTable) return sharedLine(resource, event.type, event.object);
    const { resourceVersion } = event.object.metadata;
    const options = { now: now(), includeObject, withColumns: first };
    first = false;
    const table = renderTable(
      [inVersion(resource, event.object)],
      resource.columns,
      { resourceVersion },
      options,
    );
    return lineOf(event.type, table);
  };
}

const lineOf = (type: WatchEvent['type'], object: JsonObject): string =>
  `${JSON.stringify({ type, object })}\n`;

interface SharedLine {
  readonly type: WatchEvent['type'];
  readonly object: StoredObject;
  readonly apiVersion: string;
  readonly line: Buffer;
}

/**
 * The line that was written last: all who watch an object get it one after the other, and most of its cost is its text.
 */
let last: SharedLine | undefined;

function sharedLine(resource: Resource, type: WatchEvent['type'], object: StoredObject): Buffer {
  const apiVersion = apiVersionOf(resource);
  if (last?.object === object && last.type === type && last.apiVersion === apiVersion) return last.line;
  const line = Buffer.from(lineOf(type, inVersion(resource, object)));
  last = { type, object, apiVersion, line };
  return line;
}

function emptyTable(object: JsonObject): JsonObject {
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions: null, rows: [] };
}

/** @returns an object in the version that was asked for; versions of one resource differ in nothing else. */
export function inVersion(resource: Resource, object: StoredObject): StoredObject {
  const apiVersion = apiVersionOf(resource);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}
