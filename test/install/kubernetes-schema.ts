import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import * as models from '@kubernetes/client-node';
import type { KubernetesObject } from '../../api/object.ts';

/**
 * Holds manifests against Kubernetes' own API, as the models of @kubernetes/client-node have it, which are generated
 * from its OpenAPI document: unknown fields, wrong types, missing fields.
 */

interface Attribute {
  readonly name: string;
  /** As in JSON. */
  readonly baseName: string;
  /** In TypeScript's words: `Array<V1Container>`, `{ [key: string]: string; }`. */
  readonly type: string;
}

interface Model {
  readonly attributeTypeMap: readonly Attribute[];
}

const MODELS = path.join(
  path.dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node')),
  'gen/models',
);

/**
 * @returns everything in an object that Kubernetes doesn't know or misses, by its path; undefined for a kind that is
 *   not Kubernetes' own.
 */
export function problemsOf(object: KubernetesObject): string[] | undefined {
  const version = object.apiVersion.split('/').at(-1) ?? '';
  const name = `${version.slice(0, 1).toUpperCase()}${version.slice(1)}${object.kind}`;
  const own = !object.apiVersion.includes('.') || object.apiVersion.includes('.k8s.io/');
  return own && modelOf(name) !== undefined ? check(object, name, '') : undefined;
}

function modelOf(type: string): Model | undefined {
  return (models as unknown as Record<string, Partial<Model>>)[type]?.attributeTypeMap === undefined
    ? undefined
    : (models as unknown as Record<string, Model>)[type];
}

function check(value: unknown, type: string, at: string): string[] {
  const item = /^(?:Array|Set)<(.+)>$/.exec(type)?.[1];
  if (item !== undefined) {
    if (!Array.isArray(value)) return [`${at}: expected a list`];
    return value.flatMap((each, i) => check(each, item, `${at}[${i}]`));
  }
  const entry = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  if (entry !== undefined) {
    if (!isObject(value)) return [`${at}: expected a map`];
    return Object.entries(value).flatMap(([key, each]) => check(each, entry, `${at}.${key}`));
  }
  const model = modelOf(type);
  return model === undefined ? checkScalar(value, type, at) : checkObject(value, model, type, at);
}

function checkObject(value: unknown, model: Model, type: string, at: string): string[] {
  if (!isObject(value)) return [`${at}: expected an object`];
  const known = new Map(model.attributeTypeMap.map((attribute) => [attribute.baseName, attribute]));
  const problems = Object.entries(value).flatMap(([key, each]) => {
    const attribute = known.get(key);
    return attribute === undefined
      ? [`${at}.${key}: unknown field of ${type}`]
      : check(each, attribute.type, `${at}.${key}`);
  });
  const required = requiredOf(type);
  const missing = model.attributeTypeMap.filter(
    ({ name, baseName }) => required.has(name) && !(baseName in value),
  );
  return [...problems, ...missing.map(({ baseName }) => `${at}.${baseName}: missing in ${type}`)];
}

function checkScalar(value: unknown, type: string, at: string): string[] {
  switch (type) {
    case 'any':
    case 'object':
      return [];
    case 'IntOrString':
      return typeof value === 'string' || Number.isInteger(value) ? [] : [`${at}: expected a number or text`];
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type ? [] : [`${at}: expected a ${type}`];
    default:
      return typeof value === 'string' ? [] : [`${at}: expected a ${type}`];
  }
}

/** The models themselves don't say; their declarations do. @returns names of attributes without a question mark. */
function requiredOf(type: string): ReadonlySet<string> {
  const declared = readFileSync(path.join(MODELS, `${type}.d.ts`), 'utf8');
  return new Set([...declared.matchAll(/^ {4}'([^']+)': /gm)].map(([, name = '']) => name));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
