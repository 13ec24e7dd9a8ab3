"""JEEM: conversion of rows, and prompt functions."""
