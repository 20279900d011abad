"""Prints, as JSON, the CloudFormation template that SAM generates. It does not call AWS. Usage: transform.py template.yaml"""

import json
import sys

import boto3
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # as sam deploy sets it; the translator refuses a folder
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::LayerVersion":
        resource["Properties"]["ContentUri"] = "s3://bucket/key"
session = boto3.session.Session(region_name="us-east-1")
json.dump(Translator({}, Parser(), boto_session=session).translate(template, {}), sys.stdout, indent=1)
