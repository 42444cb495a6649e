// crdcost FILE...: what the API server estimates each validation rule of a CustomResourceDefinition to cost at most,
// computed by the API server's own code, as JSON on standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// Rule is one entry of x-kubernetes-validations.
type Rule struct {
	// Field that carries the rule, with [] for items of a list and {} for values of a map.
	Field string `json:"field"`
	// Names is what the refusal names, relative to Field.
	Names   string `json:"names,omitempty"`
	Message string `json:"message"`
	// Evaluations is how often the rule can run for one object.
	Evaluations uint64 `json:"evaluations"`
	// Cost is the estimate that counts against the limits, over all evaluations.
	Cost uint64 `json:"cost"`
}

// Definition is one CustomResourceDefinition.
type Definition struct {
	Name  string `json:"name"`
	Total uint64 `json:"total"`
	Rules []Rule `json:"rules"`
}

// Report is the whole output.
type Report struct {
	RuleLimit       uint64       `json:"ruleLimit"`
	DefinitionLimit uint64       `json:"definitionLimit"`
	Definitions     []Definition `json:"definitions"`
}

func main() {
	report := Report{
		RuleLimit:       validation.StaticEstimatedCostLimit,
		DefinitionLimit: validation.StaticEstimatedCRDCostLimit,
	}
	for _, file := range os.Args[1:] {
		definition, err := estimate(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "crdcost: %s: %v\n", file, err)
			os.Exit(1)
		}
		report.Definitions = append(report.Definitions, *definition)
	}
	out, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		fmt.Fprintf(os.Stderr, "crdcost: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(string(out))
}

func estimate(file string) (*Definition, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd v1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return nil, err
	}
	definition := &Definition{Name: crd.Name}
	for _, version := range crd.Spec.Versions {
		var root apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &root, nil); err != nil {
			return nil, err
		}
		if err := walk(&root, validation.RootCELContext(&root), "", definition); err != nil {
			return nil, err
		}
	}
	return definition, nil
}

func walk(schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string, definition *Definition) error {
	if err := rules(schema, context, path, definition); err != nil {
		return err
	}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		child := schema.Properties[name]
		childPath := name
		if path != "" {
			childPath = path + "." + name
		}
		if err := walk(&child, context.ChildPropertyContext(&child, name), childPath, definition); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		if err := walk(schema.Items.Schema, context.ChildItemsContext(schema.Items.Schema), path+"[]", definition); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		values := schema.AdditionalProperties.Schema
		return walk(values, context.ChildAdditionalPropertiesContext(values), path+"{}", definition)
	}
	return nil
}

func rules(schema *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path string, definition *Definition) error {
	if len(schema.XValidations) == 0 {
		return nil
	}
	info, err := context.TypeInfo()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, base, cel.NewExpressionsEnvLoader())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i, result := range results {
		if result.Error != nil {
			return fmt.Errorf("%s: rule %d: %s", path, i, result.Error.Detail)
		}
		// Without a bound the API server takes the most that fits into a request.
		evaluations := result.MaxCardinality
		if context.MaxCardinality != nil {
			evaluations = *context.MaxCardinality
		}
		cost := result.MaxCost * evaluations
		if evaluations != 0 && cost/evaluations != result.MaxCost {
			return fmt.Errorf("%s: rule %d: the estimate overflows", path, i)
		}
		rule := schema.XValidations[i]
		definition.Rules = append(definition.Rules, Rule{
			Field:       path,
			Names:       rule.FieldPath,
			Message:     rule.Message,
			Evaluations: evaluations,
			Cost:        cost,
		})
		definition.Total += cost + result.MessageExpressionMaxCost
	}
	return nil
}
