import { isObject, type JsonObject, objectsAt, stringAt, stringsAt } from '../json.ts';
import type { StoredObject } from '../stored-object.ts';
import { ageColumn, type Column, pathColumn } from '../table/table.ts';
import type { Resource, Schema, Subresource } from './resource.ts';

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
