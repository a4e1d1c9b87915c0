import { expect, test } from 'vitest';
import { parseRequestPath, verbOf } from './request-path.ts';

const resource = (
  group: string,
  version: string,
  namespace: string,
  plural: string,
  name = '',
  subresource = '',
) => ({
  type: 'resource',
  group,
  version,
  namespace,
  plural,
  name,
  subresource,
});

test.each([
  ['/api/v1/nodes', resource('', 'v1', '', 'nodes')],
  ['/api/v1/nodes/a/status', resource('', 'v1', '', 'nodes', 'a', 'status')],
  ['/api/v1/namespaces', resource('', 'v1', '', 'namespaces')],
  ['/api/v1/namespaces/x', resource('', 'v1', 'x', 'namespaces', 'x')],
  ['/api/v1/namespaces/x/status', resource('', 'v1', 'x', 'namespaces', 'x', 'status')],
  ['/api/v1/namespaces/x/pods', resource('', 'v1', 'x', 'pods')],
  ['/api/v1/namespaces/x/pods/p/eviction', resource('', 'v1', 'x', 'pods', 'p', 'eviction')],
  ['/apis/apps/v1/deployments', resource('apps', 'v1', '', 'deployments')],
  ['/apis/apps/v1/namespaces/x/deployments/d', resource('apps', 'v1', 'x', 'deployments', 'd')],
  ['/apis/apps/v1', { type: 'path', path: '/apis/apps/v1' }],
  ['/api/v1', { type: 'path', path: '/api/v1' }],
  ['/healthz', { type: 'path', path: '/healthz' }],
])('%s names %j', (path, expected) => {
  expect(parseRequestPath(path)).toEqual(expected);
});

test.each([
  ['GET', 'x', false, 'get'],
  ['GET', '', false, 'list'],
  ['GET', '', true, 'watch'],
  ['POST', '', false, 'create'],
  ['DELETE', '', false, 'deletecollection'],
  ['DELETE', 'x', false, 'delete'],
  ['BREW', 'x', false, undefined],
])('%s of %j is %s', (method, name, watch, verb) => {
  expect(verbOf(method, name, watch)).toBe(verb);
});
