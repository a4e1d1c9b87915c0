import { byCodeUnit, isObject, type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import { OBJECT_META } from '../ownership/builtin-types.ts';
import { DEDUCED } from '../ownership/merge-type.ts';
import { mergeTypeOfSchema } from '../ownership/schema-types.ts';
import type { StoredObject } from '../stored-object.ts';
import { ageColumn, type Column, pathColumn } from '../table/table.ts';
import type { Resource, Schema, Subresource } from './resource.ts';

/** Which resources there are now: the built-in ones and those of the established CustomResourceDefinitions. */
export interface ResourceRegistry {
  find(group: string, version: string, plural: string): Resource | undefined;
  /** @returns one version of each resource of a group and plural. */
  anyVersion(group: string, plural: string): Resource | undefined;
  ofKind(apiVersion: string, kind: string): Resource | undefined;
  all(): readonly Resource[];
  /** Puts the resources of a CustomResourceDefinition in place of those it had. */
  install(definition: string, resources: readonly Resource[]): void;
  uninstall(definition: string): void;
}

export function createResourceRegistry(builtins: readonly Resource[]): ResourceRegistry {
  const custom = new Map<string, readonly Resource[]>();
  let all: readonly Resource[] = builtins;

  function refresh(): void {
    const installed = [...custom].sort(([a], [b]) => byCodeUnit(a, b)).flatMap(([, resources]) => resources);
    all = [...builtins, ...installed];
  }

  return {
    find: (group, version, plural) =>
      all.find((each) => each.group === group && each.version === version && each.plural === plural),
    anyVersion: (group, plural) => all.find((each) => each.group === group && each.plural === plural),
    ofKind: (apiVersion, kind) => {
      const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
      return all.find((each) => each.group === group && each.version === version && each.kind === kind);
    },
    all: () => all,
    install(definition, resources) {
      custom.set(definition, resources);
      refresh();
    },
    uninstall(definition) {
      custom.delete(definition);
      refresh();
    },
  };
}

/** Turns an openAPIV3Schema into what admits objects; throws for a schema that is not structural. */
export type CompileSchema = (openAPIV3Schema: JsonObject) => Schema;

/**
 * @returns the resources that a CustomResourceDefinition serves, one for each version. Versions differ in their
 *   apiVersion alone: conversion by webhook is not offered.
 * @throws Error for a schema or a printer column that can't be read.
 */
export function customResources(definition: StoredObject, compile: CompileSchema): readonly Resource[] {
  return objectsAt(definition, 'spec', 'versions')
    .filter(({ served }) => served === true)
    .map((version) => customResource(definition, version, compile));
}

function customResource(definition: StoredObject, version: JsonObject, compile: CompileSchema): Resource {
  const names = (field: string) => stringAt(definition, 'spec', 'names', field) ?? '';
  const subresources = isObject(version['subresources']) ? Object.keys(version['subresources']) : [];
  const openAPI = isObject(version['schema']) ? version['schema']['openAPIV3Schema'] : undefined;
  return {
    group: stringAt(definition, 'spec', 'group') ?? '',
    version: String(version['name']),
    plural: names('plural'),
    singular: names('singular') || names('kind').toLowerCase(),
    kind: names('kind'),
    listKind: names('listKind') || `${names('kind')}List`,
    namespaced: stringAt(definition, 'spec', 'scope') === 'Namespaced',
    shortNames: stringsAt(definition, 'spec', 'names', 'shortNames'),
    categories: stringsAt(definition, 'spec', 'names', 'categories'),
    subresources: subresources.filter((name): name is Subresource => name === 'status'),
    generation: true,
    mergeType: isObject(openAPI) ? mergeTypeOfSchema(openAPI, OBJECT_META) : DEDUCED,
    strategicMerge: false,
    columns: columnsOf(version),
    selectable: objectsAt(version, 'selectableFields').flatMap((field) => {
      const path = stringAt(field, 'jsonPath');
      return path === undefined ? [] : [path.replace(/^\./, '')];
    }),
    strategy: {},
    ...(isObject(openAPI) ? { schema: compile(openAPI), openAPI } : {}),
  };
}

/** Without columns of its own a custom resource shows its age (apiextensions, "Additional printer columns"). */
function columnsOf(version: JsonObject): readonly Column[] {
  const columns = objectsAt(version, 'additionalPrinterColumns');
  if (columns.length === 0) return [ageColumn];
  return columns.map((column) =>
    pathColumn(String(column['name']), String(column['jsonPath']), {
      type: columnType(column['type']),
      description: stringAt(column, 'description') ?? '',
      priority: typeof column['priority'] === 'number' ? column['priority'] : 0,
    }),
  );
}

function columnType(type: unknown): Column['type'] {
  return type === 'integer' || type === 'number' || type === 'boolean' || type === 'date' ? type : 'string';
}
