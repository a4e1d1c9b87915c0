import { equal, isArray, isObject, type Json, type JsonObject, withField } from '../json.ts';
import { badRequest, StatusError } from '../status.ts';

/**
 * Applies a JSON Patch (RFC 6902).
 *
 * @throws StatusError 400 for a patch that is none, 422 for one that can't be applied or whose test fails, as the API
 *   server answers.
 */
export function applyJsonPatch(document: Json, patch: Json): Json {
  if (!isArray(patch)) throw badRequest('a JSON patch is a list of operations');
  return patch.reduce<Json>((current, operation) => {
    if (!isObject(operation)) throw badRequest('an operation of a JSON patch is an object');
    return applyOperation(current, operation);
  }, document);
}

function applyOperation(document: Json, operation: JsonObject): Json {
  const path = pointer(operation['path']);
  switch (operation['op']) {
    case 'add':
      return insert(document, path, operand(operation));
    case 'replace':
      return replace(document, path, operand(operation));
    case 'remove':
      return remove(document, path);
    case 'test':
      if (equal(lookUp(document, path), operand(operation))) return document;
      throw unprocessable(`testing value ${String(operation['path'])} failed`);
    case 'copy':
      return insert(document, path, lookUp(document, pointer(operation['from'])));
    case 'move': {
      const from = pointer(operation['from']);
      return insert(remove(document, from), path, lookUp(document, from));
    }
    default:
      throw badRequest(`unexpected kind of JSON patch operation: ${JSON.stringify(operation['op'])}`);
  }
}

function operand(operation: JsonObject): Json {
  const value = operation['value'];
  if (value === undefined) throw badRequest(`JSON patch operation ${String(operation['op'])} has no value`);
  return value;
}

/** RFC 6901. */
function pointer(text: Json | undefined): readonly string[] {
  if (text === '') return [];
  if (typeof text !== 'string' || !text.startsWith('/')) {
    throw badRequest(`${JSON.stringify(text)} is no JSON pointer`);
  }
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function unprocessable(why: string): StatusError {
  return new StatusError(
    422,
    'Invalid',
    `the server rejected our request due to an error in our request: ${why}`,
  );
}

function child(container: Json, token: string): Json {
  if (isArray(container)) {
    const item = container[index(container, token, container.length - 1)];
    if (item !== undefined) return item;
  }
  if (isObject(container) && Object.hasOwn(container, token)) {
    const value = container[token];
    if (value !== undefined) return value;
  }
  throw unprocessable(`there is nothing at ${JSON.stringify(token)}`);
}

function index(list: readonly Json[], token: string, last: number): number {
  if (!/^(0|[1-9]\d*)$/.test(token) || Number(token) > last) {
    throw unprocessable(`${JSON.stringify(token)} is no index of a list of ${list.length}`);
  }
  return Number(token);
}

function lookUp(document: Json, path: readonly string[]): Json {
  return path.reduce(child, document);
}

/** Changes the container that holds the last token of a path. */
function edit(
  document: Json,
  path: readonly string[],
  change: (container: Json, token: string) => Json,
): Json {
  const [token, ...rest] = path;
  if (token === undefined) throw unprocessable('the whole document can not be changed this way');
  if (rest.length === 0) return change(document, token);
  const inner = edit(child(document, token), rest, change);
  if (isArray(document)) return document.with(Number(token), inner);
  return isObject(document) ? withField(document, [token], inner) : document;
}

function insert(document: Json, path: readonly string[], value: Json): Json {
  if (path.length === 0) return value;
  return edit(document, path, (container, token) => {
    if (isArray(container)) {
      const position = token === '-' ? container.length : index(container, token, container.length);
      return container.toSpliced(position, 0, value);
    }
    if (isObject(container)) return { ...container, [token]: value };
    throw unprocessable(`${JSON.stringify(token)} is in neither an object nor a list`);
  });
}

function replace(document: Json, path: readonly string[], value: Json): Json {
  if (path.length === 0) return value;
  return edit(document, path, (container, token) => {
    child(container, token);
    return isArray(container)
      ? container.with(Number(token), value)
      : { ...(container as JsonObject), [token]: value };
  });
}

function remove(document: Json, path: readonly string[]): Json {
  return edit(document, path, (container, token) => {
    child(container, token);
    return isArray(container)
      ? container.toSpliced(Number(token), 1)
      : withField(container as JsonObject, [token], undefined);
  });
}
